import { expect, test } from "vitest";
import { compareNumbers, differenceOf } from "../../src/model/differences";

const raw = (data: number[], shape: number[], samples: number[] | null = null) => ({
  data: Float32Array.from(data), shape, samples,
});

test("numbers: difference, and ratio where it says something", () => {
  expect(compareNumbers("std", 6, 2)).toMatchObject({ difference: 4, ratio: 3 });
  expect(compareNumbers("mean", -1, 2)).toMatchObject({ difference: -3, ratio: null });
  expect(compareNumbers("std", 1, 0)).toMatchObject({ difference: 1, ratio: null });
  expect(compareNumbers("std", null, 2)).toMatchObject({ difference: null, ratio: null });
});

test("values of equal shape", () => {
  expect(differenceOf(raw([1, 2], [2]), raw([3, 1], [2]))).toMatchObject({ shape: [2], data: Float32Array.of(-2, 1) });
});

test("samples are matched by number, not by place", () => {
  const a = raw([1, 2, 3, 4, 5, 6], [3, 2], [0, 7, 9]);
  const b = raw([10, 20, 30, 40], [2, 2], [9, 0]);
  const found = differenceOf(a, b);
  expect(found).toMatchObject({ shape: [2, 2], samples: [0, 9], data: Float32Array.of(-29, -38, -5, -14) });
  expect((found as { note: string }).note).toContain("1 on one side only");
});

test("what cannot be subtracted is said", () => {
  expect(differenceOf(raw([1, 2], [2]), raw([1, 2], [1, 2]))).toContain("[2] and [1, 2]");
  const [first, fifth] = [raw([1, 2], [1, 2], [0]), raw([1, 2], [1, 2], [4])];
  expect(differenceOf(first, fifth)).toContain("No sample was kept on both sides");
  expect(differenceOf(raw([1, 2], [1, 2], [0]), raw([1], [1, 1], [0]))).toContain("per sample");
});
