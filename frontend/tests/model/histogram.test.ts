import { expect, test } from "vitest";
import { gaussian, generator } from "../networks";
import {
  addUp, BINS, binOf, binRange, binSpan, histogramOf, total, ZERO_BIN,
} from "../../src/model/histogram";

test("bins cover the line without gaps, from negative to positive", () => {
  for (let bin = 1; bin < BINS; bin++) {
    if (bin === ZERO_BIN || bin === ZERO_BIN + 1) continue; // next to zero lies what is smaller than 2^-32
    expect(binRange(bin)[0]).toBe(binRange(bin - 1)[1]);
  }
  expect(binRange(ZERO_BIN)).toEqual([0, 0]);
  expect(binRange(ZERO_BIN + 1)).toEqual([2 ** -32, 1.5 * 2 ** -32]);
  expect(binRange(256)).toEqual([1.5 * 2 ** 31, 2 ** 32]);
});

test("a value lies in its bin", () => {
  const random = generator(4);
  for (let i = 0; i < 2000; i++) {
    const value = gaussian(random) * 10 ** (8 * (random() - 0.5));
    const [low, high] = binRange(binOf(value));
    expect(value >= low && value <= high).toBe(true);
  }
  expect([binOf(0), binOf(-0), binOf(1), binOf(1.5)]).toEqual([128, 128, 129 + 64, 129 + 65]);
  expect([binOf(1e-30), binOf(-1e-30), binOf(1e30), binOf(-1e30)]).toEqual([129, 127, 256, 0]);
});

test("adding up, spans, totals", () => {
  const sum = addUp([{ first: 100, counts: [1, 2] }, { first: 101, counts: [3, 0, 4] }]);
  expect(sum.first).toBe(100);
  expect([...(sum.counts as Float64Array)]).toEqual([1, 5, 0, 4]);
  expect(total(sum)).toBe(10);
  expect(binSpan([{ first: 3, counts: [] }])).toEqual([BINS, -1]);
  expect(addUp([]).counts).toHaveLength(0);
});

test("counting by bits agrees with counting by logarithms", () => {
  const random = generator(9);
  const values = Float32Array.from({ length: 3000 }, (_, i) =>
    i % 50 === 0 ? 0 : gaussian(random) * 10 ** (24 * (random() - 0.5)));
  const slow = new Float64Array(BINS);
  for (const value of values) slow[binOf(value)]++;
  const { first, counts } = histogramOf(values);
  const fast = new Float64Array(BINS);
  for (let i = 0; i < counts.length; i++) fast[first + i] = counts[i];
  expect(fast).toEqual(slow);
  expect(counts[0]).toBeGreaterThan(0);
});

test("what is not finite is in no bin", () => {
  expect(total(histogramOf(Float32Array.of(NaN, Infinity, -Infinity, 1, -0)))).toBe(2);
  expect(histogramOf(Float32Array.of(NaN)).counts).toHaveLength(0);
});
