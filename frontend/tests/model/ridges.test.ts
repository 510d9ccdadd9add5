import { expect, test } from "vitest";
import { ridgesOf } from "../../src/model/ridges";

test("at most 15 steps, and the chosen one in its place", () => {
  const steps = Array.from({ length: 100 }, (_, i) => 10 * i);
  const rows = ridgesOf(steps, 330);
  expect([rows.length, rows[0], rows[15]]).toEqual([16, 0, 99]);
  expect(rows).toContain(33);
  expect(rows).toEqual([...rows].sort((a, b) => a - b));
  expect(ridgesOf(steps, 0)).toHaveLength(15);
});

test("few steps are all drawn", () => {
  expect(ridgesOf([3], null)).toEqual([0]);
  expect(ridgesOf([3, 4, 9], 7)).toEqual([0, 1, 2]);
  expect(ridgesOf([], 7)).toEqual([]);
});
