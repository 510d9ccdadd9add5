import { expect, test } from "vitest";
import { rankIn, spreadOf, unitScores, unitSteps, zScore } from "../../src/model/spread";

test("spread of finite numbers, and who is at the ends", () => {
  const spread = spreadOf([2, NaN, 4, Infinity, 9]);
  expect(spread).toMatchObject({ count: 3, mean: 5, low: 2, high: 9, lowAt: 0, highAt: 4 });
  expect(spread?.std).toBeCloseTo(Math.sqrt((9 + 1 + 16) / 3));
  expect(spreadOf([NaN])).toBeNull();
});

test("scores, also where all samples agree", () => {
  expect(zScore(5, 3, 2)).toBe(1);
  expect([zScore(3, 3, 0), zScore(4, 3, 0), zScore(2, 3, 0)]).toEqual([0, Infinity, -Infinity]);
  expect(zScore(NaN, 3, 0)).toBeNaN();
});

test("rank counts equals half", () => {
  expect(rankIn([1, 2, 2, 3], 2)).toBe(0.5);
  expect(rankIn([1, 2, NaN, 3], 3)).toBeCloseTo(2.5 / 3);
  expect(rankIn([], 3)).toBeNaN();
});

test("every element against its own unit", () => {
  const units = { shape: [2, 2], mean: [0, 1, 2, 3], std: [1, 2, 1, 0] };
  expect([...(unitScores([1, 5, 2, 3], [2, 2], units) ?? [])]).toEqual([1, 2, 0, 0]);
});

test("units that are features: the last axis, or channels of images", () => {
  const features = { shape: [2], mean: [0, 10], std: [1, 5] };
  expect([...(unitScores([1, 15, 2, 20], [2, 2], features) ?? [])]).toEqual([1, 1, 2, 2]);
  // Channels first: elements 0 and 1 belong to channel 0.
  expect([...(unitScores([1, 2, 15, 20], [2, 1, 2], features) ?? [])]).toEqual([1, 2, 1, 2]);
  expect(unitScores([1, 2, 3], [3], features)).toBeNull();
  expect(unitSteps([4, 5, 6], [4])).toEqual({ inner: 30, units: 4 });
});
