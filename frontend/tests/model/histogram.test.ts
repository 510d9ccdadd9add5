import { expect, test } from "vitest";
import { gaussian, generator } from "../networks";
import {
  addUp, BINS, binOf, binRange, binSpan, decadeBins, histogramOf, onLinearAxis, total, valueSpan, ZERO_BIN,
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

test("on the linear axis nothing is lost", () => {
  const histogram = { first: 110, counts: [1, 0, 5, 2, 9, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 1, 1] };
  const [low, high] = valueSpan([histogram], 0);
  const sum = (values: Float64Array): number => values.reduce((a, b) => a + b, 0);
  expect(sum(onLinearAxis(histogram, low, high, 40))).toBeCloseTo(1);
});

test("the linear axis agrees with counting by hand", () => {
  const histogram = { first: binOf(1), counts: [2, 2] }; // two in [1, 1.5), two in [1.5, 2)
  expect([...onLinearAxis(histogram, 1, 2, 4)]).toEqual([0.25, 0.25, 0.25, 0.25]);
  expect([...onLinearAxis({ first: ZERO_BIN, counts: [3] }, -1, 1, 2)]).toEqual([0, 1]);
});

test("a sliver at the ends does not set the range", () => {
  const counts = new Array<number>(30).fill(0);
  counts[0] = 10_000;
  counts[29] = 1;
  expect(valueSpan([{ first: 140, counts }])).toEqual(binRange(140));
});

test("decades on the axis of bins", () => {
  expect(decadeBins(binOf(-0.1), binOf(0.1)).map(([, value]) => value)).toContain(0);
  expect(decadeBins(binOf(0.05), binOf(20)).map(([, value]) => value)).toEqual([0.1, 1, 10]);
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
