import { expect, test } from "vitest";
import { against, BEYOND, pointsText, ratioScale, ratioText } from "../../src/model/ratio";

test("how a number stands to another", () => {
  expect(against(0.1, 1, false)).toBeCloseTo(-1);
  expect([against(0, 2, false), against(2, 0, false), against(0, 0, false), against(-2, 2, false)]).toEqual([
    -BEYOND, BEYOND, 0, 0,
  ]);
  expect(against(0.9, 0.5, true)).toBeCloseTo(0.4);
});

test("ratios as words", () => {
  expect([0, 1, -0.43, -6.1, 2.2, -BEYOND, BEYOND].map(ratioText)).toEqual([
    "×1", "×10", "×0.37", "×10⁻⁶", "×158", "×0", "from 0",
  ]);
  expect(pointsText(-0.125)).toBe("−13 points");
});

test("the scale is always the same, so that pictures can be compared", () => {
  expect([10 ** ratioScale(false).low, 10 ** ratioScale(false).high].map((end) => Number(end.toPrecision(1)))).toEqual(
    [0.03, 30],
  );
  expect(ratioScale(true)).toMatchObject({ low: -1, high: 1 });
});
