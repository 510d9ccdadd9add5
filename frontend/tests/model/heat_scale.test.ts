import { expect, test } from "vitest";
import { VALUE, type Heat } from "../../src/model/heat";
import { roundDown, roundUp, scaleFor } from "../../src/model/heat_scale";

const heatOf = (...values: number[]): Heat => ({
  values: Float64Array.from(values), states: new Uint8Array(values.length).fill(VALUE),
});

test("ends are round", () => {
  expect([0.7, 1, 1.1, 2.1, 5.5, 0.0010000000474974513].map(roundUp)).toEqual([1, 1, 2, 5, 10, 0.001]);
  expect([0.7, 1, 1.9, 2.1, 9, 0.0009999999].map(roundDown)).toEqual([0.5, 1, 1, 2, 5, 0.001]);
  expect(scaleFor([heatOf(3e-7, 0.04)], "log")).toMatchObject({ kind: "log", low: 2e-7, high: 0.05 });
  expect(scaleFor([heatOf(-3, 1)], "diverging")).toMatchObject({ kind: "diverging", low: -5, high: 5 });
  expect(scaleFor([heatOf(0.1, 0.61)], "linear")).toMatchObject({ kind: "linear", low: 0, high: 1 });
  expect(scaleFor([heatOf(0, 0)], "linear").high).toBe(1);
});

test("numbers that have hardly moved have the same scale", () => {
  const before = scaleFor([heatOf(2.3e-4, 0.031)], "log");
  const after = scaleFor([heatOf(2.6e-4, 0.044)], "log");
  expect([after.low, after.high]).toEqual([before.low, before.high]);
});

test("equal numbers still have a scale that is one decade wide", () => {
  const scale = scaleFor([heatOf(0.3, 0.3)], "log");
  expect(scale.high / scale.low).toBeGreaterThanOrEqual(10);
});

test("one tensor that has almost vanished does not make all others look alike", () => {
  const usual = Array.from({ length: 200 }, (_, i) => 1e-3 * (1 + i));
  expect(scaleFor([heatOf(1e-30, ...usual)], "log").low).toBeGreaterThan(1e-4);
});
