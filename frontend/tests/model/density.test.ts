/** Bars against the numbers that they are of: drawn is what was there. */
import { expect, test } from "vitest";
import { barsOf, masses, outsideOf, QUANTILES, rangeOf, type Distribution } from "../../src/model/density";
import { histogramOf } from "../../src/model/histogram";
import { gaussian, generator } from "../networks";

const COUNT = 20_000;

function distributionOf(values: Float32Array, isWhole = false): Distribution {
  const sorted = Float32Array.from(values.filter(Number.isFinite)).sort();
  const at = (level: number): number => sorted[Math.floor(level * (sorted.length - 1))];
  return {
    histogram: histogramOf(values), isWhole, min: sorted[0] ?? NaN, max: sorted[sorted.length - 1] ?? NaN,
    quantiles: sorted.length ? QUANTILES.map(([, level]) => [level, at(level)] as const) : [],
  };
}

const made = (make: (random: () => number) => number, count = COUNT): Float32Array => {
  const random = generator(3);
  return Float32Array.from({ length: count }, () => make(random));
};

/** Shares per bar, counted one by one. */
function counted(values: Float32Array, [low, high]: readonly [number, number], bars: number): Float64Array {
  const shares = new Float64Array(bars);
  for (const value of values) {
    const bar = Math.floor(((value - low) / (high - low)) * bars);
    if (value !== 0 && bar >= 0 && bar < bars) shares[bar] += 1 / values.length;
  }
  return shares;
}

function worst(values: Float32Array, distribution = distributionOf(values)): number {
  const range = rangeOf([distribution]) as [number, number];
  const bars = barsOf(range, [distribution]);
  const [drawn, true_] = [masses(distribution, range, bars), counted(values, range, bars)];
  const top = Math.max(...true_);
  return Math.max(...drawn.map((mass, i) => Math.abs(mass - true_[i]))) / top;
}

test.each([
  ["a bell", made(gaussian)],
  ["a bell of small numbers", made((random) => 1e-6 * gaussian(random))],
  ["even numbers from 0 to 1", made((random) => random())],
  ["even numbers around zero", made((random) => random() - 0.5)],
  ["half a bell", made((random) => Math.abs(gaussian(random)))],
])("%s is drawn as it is, within a seventh of its highest bar", (_, values) => {
  expect(worst(values)).toBeLessThan(1 / 7);
});

test("without chance, even numbers make even bars", () => {
  const values = Float32Array.from({ length: 4096 }, (_, i) => (i + 0.5) / 4096);
  expect(worst(values)).toBeLessThan(0.06);
});

test("a bell has one hump", () => {
  const distribution = distributionOf(made(gaussian));
  const range = rangeOf([distribution]) as [number, number];
  const drawn = [...masses(distribution, range, 40)];
  const peak = drawn.indexOf(Math.max(...drawn));
  expect(Math.abs(peak - 19.5)).toBeLessThan(4);
  const slack = Math.max(...drawn) * 0.06;
  for (let i = 1; i < 40; i++) {
    if (i <= peak) expect(drawn[i] - drawn[i - 1]).toBeGreaterThan(-slack);
    else expect(drawn[i - 1] - drawn[i]).toBeGreaterThan(-slack);
  }
});

test("far from zero, where a bin is wide, the quantiles give the shape", () => {
  expect(worst(made((random) => 5 + 0.05 * gaussian(random)))).toBeLessThan(0.25);
});

test("a constant is one bar in the middle that holds everything", () => {
  const distribution = distributionOf(new Float32Array(100).fill(3));
  const range = rangeOf([distribution]) as [number, number];
  expect((range[0] + range[1]) / 2).toBe(3);
  const drawn = masses(distribution, range, 41);
  expect(drawn[20]).toBe(1);
  expect(drawn.reduce((a, b) => a + b)).toBe(1);
});

test("one outlier does not flatten the rest: the range leaves it out and says so", () => {
  const values = made(gaussian, 4096);
  values[7] = 1000;
  const distribution = distributionOf(values);
  const range = rangeOf([distribution]) as [number, number];
  expect(range[1]).toBeLessThan(4);
  expect(worst(values)).toBeLessThan(1 / 7);
  const { above, below } = outsideOf(distribution, range);
  expect(above).toBeGreaterThan(1 / 4096 / 2);
  expect(above + below).toBeLessThan(0.02);
});

test("whole numbers have a bar each, and zero is one of them", () => {
  const values = made((random) => Math.floor(random() * 4));
  const distribution = distributionOf(values, true);
  expect(rangeOf([distribution])).toEqual([-0.5, 3.5]);
  const drawn = masses(distribution, [-0.5, 3.5], barsOf([-0.5, 3.5], [distribution]));
  expect(drawn).toHaveLength(4);
  for (let i = 0; i < 4; i++) {
    expect(drawn[i]).toBeCloseTo(values.filter((value) => value === i).length / COUNT, 10);
  }
  const negative = distributionOf(Float32Array.of(-3, -3, -1, 2), true);
  expect([...masses(negative, [-3.5, 2.5], 6)].map((mass) => mass * 4)).toEqual([2, 0, 1, 0, 0, 1]);
});

test("exact zeros are not in the bars", () => {
  const values = made((random) => Math.max(0, gaussian(random)));
  const distribution = distributionOf(values);
  const range = rangeOf([distribution]) as [number, number];
  const { zeros, above } = outsideOf(distribution, range);
  expect(zeros).toBeCloseTo(values.filter((value) => value === 0).length / COUNT, 10);
  const drawn = masses(distribution, range, 40).reduce((a, b) => a + b);
  expect(drawn + zeros + above).toBeCloseTo(1);
  expect(worst(values)).toBeLessThan(1 / 7);
});

test("all zero, all NaN, nothing: there is no range", () => {
  expect(rangeOf([distributionOf(new Float32Array(9))])).toBeNull();
  expect(rangeOf([distributionOf(new Float32Array(9).fill(NaN))])).toBeNull();
  expect(outsideOf(distributionOf(new Float32Array(9)), [0, 1])).toEqual({ zeros: 1, below: 0, above: 0 });
  expect([...masses(distributionOf(new Float32Array(9)), [0, 1], 2)]).toEqual([0, 0]);
});

test("two share one range, and nothing is lost in it", () => {
  const two = [distributionOf(made((random) => random())), distributionOf(made((random) => 3 + random()))];
  const range = rangeOf(two) as [number, number];
  expect(range[0]).toBeLessThan(0.02);
  expect(range[1]).toBeGreaterThan(3.98);
  for (const each of two) expect(masses(each, range, 40).reduce((a, b) => a + b)).toBeCloseTo(1, 1);
});

test("bins alone, without extremes and quantiles, as of the steps of a training", () => {
  const values = made(gaussian);
  expect(worst(values, { histogram: histogramOf(values) })).toBeLessThan(0.25);
});

test("many equal numbers among others step up where they are", () => {
  const values = made((random) => (random() < 0.5 ? 1.25 : gaussian(random)));
  const distribution = distributionOf(values);
  const range = rangeOf([distribution]) as [number, number];
  const drawn = masses(distribution, range, 40);
  const bar = Math.floor(((1.25 - range[0]) / (range[1] - range[0])) * 40);
  expect(drawn.indexOf(Math.max(...drawn))).toBe(bar);
});
