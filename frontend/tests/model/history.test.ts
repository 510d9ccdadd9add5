import { expect, test } from "vitest";
import { ABSENT, HAS_NAN, linearScale, logScale, SHADE_ABSENT, SHADE_NAN, VALUE, worstShade } from "../../src/model/heat";
import { moved, scaleWith } from "../../src/model/heat_scale";
import { columnsOf, stripShades } from "../../src/model/history";

test("columns reach half-way to their neighbours", () => {
  expect([...columnsOf([0, 10, 100])]).toEqual([0, 0.05, 0.55, 1]);
  expect([...columnsOf([7])]).toEqual([0, 1]);
  expect([...columnsOf([])]).toEqual([0]);
});

const history = (steps: number[]) => ({ edges: columnsOf(steps), at: 0, column: 0, line: () => null });

test("every pixel has the colour of the step that stands there", () => {
  const line = { values: [0, 1, 0.5], states: [VALUE, VALUE, ABSENT] };
  const shades = stripShades(history([0, 10, 20]), line, linearScale(0, 1), 8, worstShade);
  expect([...shades]).toEqual([0, 0, 255, 255, 255, 255, SHADE_ABSENT, SHADE_ABSENT]);
});

test("steps that share a pixel: the worst is seen", () => {
  const steps = Array.from({ length: 1000 }, (_, i) => i);
  const states = steps.map((i) => (i === 777 ? HAS_NAN : VALUE));
  const shades = stripShades(history(steps), { values: steps.map(() => 0.5), states }, linearScale(0, 1), 100, worstShade);
  expect([...shades].filter((shade) => shade === SHADE_NAN)).toHaveLength(1);
  expect(shades[77]).toBe(SHADE_NAN);
});

test("ends of a scale can be chosen", () => {
  expect(scaleWith(linearScale(0, 1), [0.2, 0.4]).place(0.3)).toBeCloseTo(0.5);
  expect(scaleWith(linearScale(0, 1), [2, 1])).toMatchObject({ low: 0, high: 1 });
});

test("an end that is dragged moves, and never meets the other", () => {
  expect(moved(linearScale(0, 10), "high", 0.5)).toEqual([0, 15]);
  expect(moved(linearScale(0, 10), "low", 3)).toEqual([9.5, 10]);
  const log = logScale(1, 1000);
  const [low, high] = moved(log, "low", 0.1);
  expect(low).toBeGreaterThan(log.low);
  expect(high).toBeCloseTo(log.high, -1);
});
