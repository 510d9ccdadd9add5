import { expect, test } from "vitest";
import { ABSENT, VALUE } from "../../src/model/heat";
import { againstPast, BEYOND, pointsText, ratio, ratioScale, ratioText } from "../../src/model/past";

const line = (...values: number[]) => ({
  values: Float64Array.from(values), states: Uint8Array.from(values, (value) => (Number.isNaN(value) ? ABSENT : VALUE)),
});

test("from the fourth step on, ÷ the median of the earlier ones", () => {
  const found = againstPast(line(1, 2, 3, 20, NaN, 2.5), false);
  expect(Array.from(found.states)).toEqual([ABSENT, ABSENT, ABSENT, VALUE, ABSENT, VALUE]);
  expect(found.values[3]).toBeCloseTo(1); // 20 ÷ 2
  expect(found.values[5]).toBeCloseTo(0); // 2.5 ÷ the median of 1, 2, 3, 20
});

test("shares are subtracted", () => {
  expect(againstPast(line(0.1, 0.1, 0.1, 0.9), true).values[3]).toBeCloseTo(0.8);
});

test("zero is as far away as can be said", () => {
  expect([ratio(0, 2, false), ratio(2, 0, false), ratio(0, 0, false), ratio(-2, 2, false)]).toEqual([
    -BEYOND, BEYOND, 0, 0,
  ]);
});

test("ratios as words", () => {
  expect([0, 1, -0.43, -BEYOND, BEYOND].map((value) => ratioText(value))).toEqual([
    "×1", "×10", "×0.37", "×0", "from 0",
  ]);
  expect(pointsText(-0.125)).toBe("−13 points");
});

test("the scale is always the same, so that pictures can be compared", () => {
  expect([10 ** ratioScale(false).low, 10 ** ratioScale(false).high].map((end) => Number(end.toPrecision(1)))).toEqual(
    [0.03, 30],
  );
  expect(ratioScale(true)).toMatchObject({ low: -1, high: 1 });
});
