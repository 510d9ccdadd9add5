import { expect, test } from "vitest";
import { columnScores, isOrder, orderOf, unitColumnScores, withColumns } from "../../src/model/ordering";
import { defaultChoice, sliceOf, valueAt } from "../../src/model/slices";

const data = Float32Array.of(1, -5, 0, 3, 5, 0);
const slice = sliceOf(data, [2, 3], defaultChoice([2, 3]));

test("highest first, what is no number before all, equals as they were", () => {
  expect([...orderOf([1, NaN, 3, 1])]).toEqual([1, 2, 0, 3]);
  expect([isOrder("std"), isOrder("")]).toEqual([true, false]);
});

test("statistics of columns agree with those by hand", () => {
  expect([...columnScores(slice, "mean")]).toEqual([2, 0, 0]);
  expect([...columnScores(slice, "std")]).toEqual([1, 5, 0]);
  expect([...columnScores(slice, "abs_max")]).toEqual([3, 5, 0]);
  const odd = sliceOf(Float32Array.of(1, NaN, 2, 0), [2, 2], defaultChoice([2, 2]));
  expect(columnScores(odd, "abs_max")[1]).toBeNaN();
});

test("columns change places, rows do not", () => {
  const sorted = withColumns(slice, [1, 2, 0]);
  expect([0, 1, 2].map((column) => valueAt(sorted, 0, column))).toEqual([-5, 0, 1]);
  expect([0, 1, 2].map((column) => valueAt(sorted, 1, column))).toEqual([5, 0, 3]);
});

test("units over the batch along one axis", () => {
  const values = [1, 2, 3, 4, 5, 9];
  expect([...(unitColumnScores(values, [2, 3], [2, 3], 1, "mean") ?? [])]).toEqual([2.5, 3.5, 6]);
  expect([...(unitColumnScores(values, [2, 3], [2, 3], 0, "abs_max") ?? [])]).toEqual([3, 9]);
  expect([...(unitColumnScores([7, 8, 9], [3], [5, 3], 1, "std") ?? [])]).toEqual([7, 8, 9]);
  expect(unitColumnScores([7, 8, 9], [3], [5, 3], 0, "std")).toBeNull();
});
