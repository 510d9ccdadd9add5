import { expect, test } from "vitest";
import { placesInOrder } from "../../src/model/layers/sorting";

test.each([0, 1, 2, 7, 500])("places in ascending order, equal numbers in theirs (%i)", (count) => {
  let state = 7;
  const next = (): number => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31 - 0.5;
  for (const size of [4, 1e-30, 1e30]) {
    const numbers = Float32Array.from({ length: count }, () => Math.round(next() * 40) * size + 0);
    const wanted = [...numbers.keys()].sort((a, b) => numbers[a] - numbers[b] || a - b);
    expect([...placesInOrder(numbers)]).toEqual(wanted);
  }
});

test("part of a longer array", () => {
  expect([...placesInOrder(Float32Array.of(9, 3, -1, 2).subarray(1))]).toEqual([1, 2, 0]);
});
