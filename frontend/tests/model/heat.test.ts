import { expect, test } from "vitest";
import {
  ABSENT, divergingScale, emptyHeat, fitScale, HAS_INF, HAS_NAN, heatState, linearScale, logScale, SHADE_ABSENT,
  SHADE_INF, SHADE_NAN, SHADE_ZERO, shadeOf, shadesOf, VALUE, worstShade, type Heat,
} from "../../src/model/heat";

const heatOf = (...values: number[]): Heat => ({
  values: Float64Array.from(values), states: new Uint8Array(values.length).fill(VALUE),
});

test("scales begin and end where they say", () => {
  for (const scale of [linearScale(2, 4), logScale(1e-7, 1e-1), divergingScale(3)]) {
    expect(scale.place(scale.low)).toBeCloseTo(0);
    expect(scale.place(scale.high)).toBeCloseTo(1);
    expect(scale.place(scale.low - 10)).toBe(0);
    expect(scale.place(scale.high + 10)).toBe(1);
  }
  expect(logScale(1e-4, 1).place(1e-2)).toBeCloseTo(0.5);
  expect(divergingScale(5).place(0)).toBe(0.5);
});

test("the scale follows the numbers", () => {
  expect(fitScale([heatOf(1e-7, 1e-2, 0.1)])).toMatchObject({ kind: "log", low: 1e-7, high: 0.1 });
  expect(fitScale([heatOf(1, 2, 3)])).toMatchObject({ kind: "linear", low: 1, high: 3 });
  expect(fitScale([heatOf(-1, 4)])).toMatchObject({ kind: "diverging", low: -4, high: 4 });
  expect(fitScale([heatOf(1e-30, 1)]).low).toBeCloseTo(1e-12, 20);
  expect(fitScale([heatOf(0, 0)])).toMatchObject({ kind: "linear", low: 0, high: 1 });
  expect(fitScale([heatOf(5)])).toMatchObject({ low: 0, high: 5 });
  expect(fitScale([])).toMatchObject({ low: 0, high: 1 });
  expect(fitScale([heatOf(1, 2)], "log").kind).toBe("log");
  expect(fitScale([heatOf(-1, 2)], "log").kind).toBe("linear");
});

test("two panes share a scale; what is not finite has no say in it", () => {
  const odd = heatOf(NaN, Infinity, 7);
  expect(fitScale([heatOf(1, 2), odd])).toMatchObject({ low: 1, high: 7 });
  const broken = { values: Float64Array.of(1e9, 3), states: Uint8Array.of(HAS_NAN, VALUE) };
  expect(fitScale([broken]).high).toBe(3);
});

test("nothing, zero, NaN and infinity each look different from every value", () => {
  const scale = logScale(1e-3, 1);
  const special = [
    shadeOf(0, ABSENT, scale), shadeOf(0, VALUE, scale), shadeOf(0.5, HAS_NAN, scale), shadeOf(0.5, HAS_INF, scale),
  ];
  expect(special).toEqual([SHADE_ABSENT, SHADE_ZERO, SHADE_NAN, SHADE_INF]);
  expect(shadeOf(NaN, VALUE, scale)).toBe(SHADE_NAN);
  expect(shadeOf(-Infinity, VALUE, scale)).toBe(SHADE_INF);
  expect(shadeOf(1e-3, VALUE, scale)).toBe(0);
  expect(shadeOf(1, VALUE, scale)).toBe(255);
  expect(shadeOf(0, VALUE, linearScale(0, 1))).toBe(0);
});

test("where several share a spot, the worst is seen", () => {
  expect([3, SHADE_NAN, 250, SHADE_INF].reduce(worstShade)).toBe(SHADE_NAN);
  expect([3, 250, SHADE_ZERO].reduce(worstShade)).toBe(250);
  expect([SHADE_ABSENT, SHADE_ZERO].reduce(worstShade)).toBe(SHADE_ZERO);
  expect([SHADE_ABSENT, 0].reduce(worstShade)).toBe(0);
});

test("counts of non-finite elements decide, statistics leave them out", () => {
  expect(heatState(0.5, 1, 0)).toBe(HAS_NAN);
  expect(heatState(0.5, 0, 2)).toBe(HAS_INF);
  expect(heatState(NaN, 0, 0)).toBe(ABSENT);
  expect(heatState(0, 0, 0)).toBe(VALUE);
  expect([...shadesOf(emptyHeat(2), linearScale(0, 1))]).toEqual([SHADE_ABSENT, SHADE_ABSENT]);
});
