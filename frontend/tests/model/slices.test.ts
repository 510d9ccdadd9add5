import { expect, test } from "vitest";
import { adaptChoice, chooseAxis, defaultChoice, indexOf, sliceExtent, sliceOf, valueAt } from "../../src/model/slices";

const shape = [3, 4, 5];
const data = Float32Array.from({ length: 60 }, (_, i) => i);
const slow = (a: number, b: number, c: number): number => a * 20 + b * 5 + c;

test("any two axes, in either order", () => {
  for (const [rows, columns] of [[0, 1], [0, 2], [1, 2], [2, 1], [1, 0], [2, 0]]) {
    const choice = { rows, columns, at: [1, 2, 3] };
    const slice = sliceOf(data, shape, choice);
    expect([slice.rows, slice.columns]).toEqual([shape[rows], shape[columns]]);
    for (let row = 0; row < slice.rows; row++) {
      for (let column = 0; column < slice.columns; column++) {
        const [a, b, c] = indexOf(choice, row, column);
        expect(valueAt(slice, row, column)).toBe(slow(a, b, c));
      }
    }
  }
});

test("vectors, scalars and empty tensors", () => {
  expect(sliceOf(data, [60], defaultChoice([60]))).toMatchObject({ rows: 1, columns: 60 });
  expect(valueAt(sliceOf(data, [], defaultChoice([])), 0, 0)).toBe(0);
  expect(valueAt(sliceOf(data, [0, 4], defaultChoice([0, 4])), 0, 0)).toBeUndefined();
});

test("outside there is nothing", () => {
  const slice = sliceOf(data, shape, defaultChoice(shape));
  for (const [row, column] of [[-1, 0], [0, 5], [3, 0]]) expect(valueAt(slice, row, column)).toBeUndefined();
});

test("a choice survives walking to a tensor of the same rank", () => {
  const choice = { rows: 1, columns: 2, at: [2, 0, 0] };
  expect(adaptChoice(choice, [2, 9, 9])).toEqual({ rows: 1, columns: 2, at: [1, 0, 0] });
  expect(adaptChoice(choice, [7])).toEqual(defaultChoice([7]));
});

test("choosing the axis of the other side swaps them", () => {
  const choice = { rows: 0, columns: 2, at: [0, 0, 0] };
  expect(chooseAxis(choice, "rows", 2)).toMatchObject({ rows: 2, columns: 0 });
  expect(chooseAxis(choice, "rows", 1)).toMatchObject({ rows: 1, columns: 2 });
});

test("extent counts what is not finite and leaves it out", () => {
  const odd = Float32Array.of(1, NaN, -2, Infinity, -Infinity, 5);
  expect(sliceExtent(sliceOf(odd, [2, 3], defaultChoice([2, 3])))).toEqual({ low: -2, high: 5, nans: 1, infs: 2 });
});
