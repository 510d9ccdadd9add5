/**
 * A recorded histogram as equal bars on a straight axis.
 *
 * Recorded bins are two per octave: drawn as they are, one bell would have two humps. So their counts are cumulated,
 * the curve through them is interpolated so that it never falls (Fritsch and Carlson), and the bars are read off it.
 * Exact quantiles, minimum and maximum are points of the same curve. Exact zeros are left out: one bar of 60 % would
 * flatten all others; they are said in words.
 */
import { binRange, total, ZERO_BIN, type Histogram } from "./histogram";

export interface Distribution {
  readonly histogram: Histogram;
  /** Of the finite elements; NaN or left out: not known. */
  readonly min?: number;
  readonly max?: number;
  /** Of all finite elements: [level, value]. */
  readonly quantiles?: readonly (readonly [number, number])[];
  /** Its elements are whole numbers: labels, ids. Zero is one of them. */
  readonly isWhole?: boolean;
}

export const QUANTILES = [
  ["q01", 0.01], ["q05", 0.05], ["q25", 0.25], ["q50", 0.5], ["q75", 0.75], ["q95", 0.95], ["q99", 0.99],
] as const;

/** How much of all finite elements lies at or below a value. */
export interface Cumulated {
  readonly at: (value: number) => number;
  /** The value below which a share of what is drawn lies. */
  readonly quantile: (share: number) => number;
  readonly low: number;
  readonly high: number;
  /** Share of exact zeros that is not part of the curve. */
  readonly zeros: number;
}

/** Null: there is nothing to draw; all is zero, or nothing is finite. */
export function cumulated(distribution: Distribution): Cumulated | null {
  const whole = total(distribution.histogram);
  const zeros = distribution.isWhole ? 0 : zerosOf(distribution.histogram);
  if (whole - zeros <= 0) return null;
  const points = distribution.isWhole ? wholePoints(distribution) : smoothPoints(distribution, zeros);
  const { x, y } = points;
  const scale = 1 / whole;
  const curve = distribution.isWhole ? straight(x, y) : monotone(x, y);
  const end = y.length - 1;
  return {
    at: (value) => (value <= x[0] ? 0 : value >= x[end] ? y[end] : curve(value)) * scale,
    quantile: (share) => inverse(x, y, share * y[end]),
    low: x[0],
    high: x[end],
    zeros: zeros / whole,
  };
}

const zerosOf = ({ first, counts }: Histogram): number => Number(counts[ZERO_BIN - first] ?? 0);

interface Points {
  readonly x: number[];
  readonly y: number[];
}

const NEAR = 0.03; // of the width of most of it

const quantileAt = (quantiles: Distribution["quantiles"] = [], level: number): number =>
  quantiles.find(([each]) => each === level)?.[1] ?? NaN;

/** Edges of bins, cut at the extremes, with the quantiles between them. */
function smoothPoints({ histogram, min = NaN, max = NaN, quantiles = [] }: Distribution, zeros: number): Points {
  const { first, counts } = histogram;
  const found: [number, number][] = [];
  let sum = 0;
  for (let i = 0; i < counts.length; i++) {
    const [from, to] = binRange(first + i);
    if (from === to) {
      found.push([0, sum]);
      continue;
    }
    if (found.length === 0) found.push([from, 0]);
    sum += Number(counts[i]);
    found.push([to, sum]);
  }
  const whole = sum + zeros;
  const edges = found.map(([value]) => value);
  const near = NEAR * (quantileAt(quantiles, 0.95) - quantileAt(quantiles, 0.05));
  for (const [level, value] of quantiles) {
    // Ranks are rounded: beside an edge, where the count is exact, a quantile would bend the curve for nothing.
    const isBeside = edges.some((edge) => Math.abs(edge - value) < near);
    if (!Number.isFinite(value) || value === 0 || isBeside) continue;
    found.push([value, level * whole - (value > 0 ? zeros : 0)]);
  }
  found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return ascending(cut(found, min, max, sum));
}

/** Nothing lies below the minimum and above the maximum. */
function cut(points: [number, number][], min: number, max: number, sum: number): [number, number][] {
  const isCut = (value: number): boolean => value <= min || value >= max; // never, where one is not known
  const inside = points.filter(([value]) => !isCut(value));
  if (min < Infinity) inside.unshift([min, 0]);
  if (max > -Infinity) inside.push([max, sum]);
  return inside;
}

/** Both rise: where many elements are one number, the curve steps up over next to no width. */
function ascending(points: readonly (readonly [number, number])[]): Points {
  const [x, y]: [number[], number[]] = [[], []];
  const last = points[points.length - 1];
  const sliver = Math.max((last[0] - points[0][0]) * 1e-9, Math.abs(last[0]) * 1e-12, Number.MIN_VALUE * 4);
  const ceiling = lowestAfter(points);
  points.forEach(([value], i) => {
    const count = Math.max(y[y.length - 1] ?? 0, Math.min(points[i][1], ceiling[i]));
    const before = x[x.length - 1];
    if (before !== undefined && value <= before) {
      if (count <= y[y.length - 1]) return;
      x.push(before + sliver);
    } else x.push(value);
    y.push(count);
  });
  if (x.length === 1) return { x: [x[0] - sliver, x[0]], y: [0, y[0]] };
  return { x, y };
}

/** A quantile between two ranks may promise more than the edge after it: the edge is exact. */
function lowestAfter(points: readonly (readonly [number, number])[]): number[] {
  const lowest = points.map(([, count]) => count);
  for (let i = lowest.length - 2; i >= 0; i--) lowest[i] = Math.min(lowest[i], lowest[i + 1]);
  return lowest;
}

/** Whole numbers fill the room from half below to half above; those that share a bin are drawn alike. */
function wholePoints({ histogram: { first, counts } }: Distribution): Points {
  const [x, y]: [number[], number[]] = [[], []];
  let sum = 0;
  for (let i = 0; i < counts.length; i++) {
    const bin = first + i;
    const [from, to] = binRange(bin);
    const [least, beyond] = bin === ZERO_BIN ? [0, 1]
      : bin > ZERO_BIN ? [Math.ceil(from), Math.ceil(to)] : [Math.floor(from) + 1, Math.floor(to) + 1];
    if (beyond <= least) continue;
    if (x.length === 0) [x[0], y[0]] = [least - 0.5, 0];
    sum += Number(counts[i]);
    x.push(beyond - 0.5);
    y.push(sum);
  }
  return { x, y };
}

/** The place of a value: the last point that is not above it. */
function placeOf(x: readonly number[], value: number): number {
  let [low, high] = [0, x.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

function straight(x: readonly number[], y: readonly number[]): (value: number) => number {
  return (value) => {
    const k = placeOf(x, value);
    return y[k] + ((y[k + 1] - y[k]) * (value - x[k])) / (x[k + 1] - x[k]);
  };
}

/** Cubic pieces whose slopes are limited so that a rising curve stays a rising curve. */
function monotone(x: readonly number[], y: readonly number[]): (value: number) => number {
  const last = x.length - 1;
  const secant = Array.from({ length: last }, (_, k) => (y[k + 1] - y[k]) / (x[k + 1] - x[k]));
  const slope = x.map((_, k) => {
    if (k === 0 || k === last) return secant[Math.min(k, last - 1)];
    const [a, b] = [secant[k - 1], secant[k]];
    if (a <= 0 || b <= 0) return 0;
    const [before, after] = [x[k] - x[k - 1], x[k + 1] - x[k]];
    const [w1, w2] = [2 * after + before, after + 2 * before];
    return (w1 + w2) / (w1 / a + w2 / b);
  });
  return (value) => {
    const k = placeOf(x, value);
    const h = x[k + 1] - x[k];
    const t = (value - x[k]) / h;
    const u = 1 - t;
    return y[k] * u * u * (1 + 2 * t) + y[k + 1] * t * t * (3 - 2 * t) + h * t * u * (slope[k] * u - slope[k + 1] * t);
  };
}

function inverse(x: readonly number[], y: readonly number[], count: number): number {
  const k = placeOf(y, count);
  const rise = y[k + 1] - y[k];
  return rise > 0 ? x[k] + ((x[k + 1] - x[k]) * (count - y[k])) / rise : x[k];
}

const WIDER = 0.12;
export const MOST_WHOLE = 48;

/** From the 1st to the 99th percentile of each, 12 % wider, but not beyond the extremes; null: nothing to show. */
export function rangeOf(all: readonly Distribution[]): [number, number] | null {
  const ranges = all.flatMap((each) => ownRange(each) ?? []);
  if (ranges.length === 0) return null;
  const low = Math.min(...ranges.map((range) => range.low));
  const high = Math.max(...ranges.map((range) => range.high));
  if (high > low) return [low, high];
  const room = Math.abs(low) / 2 || 0.5; // one number: it stands in the middle
  return [low - room, low + room];
}

function ownRange(distribution: Distribution): { readonly low: number; readonly high: number } | null {
  const curve = cumulated(distribution);
  if (!curve) return null;
  if (distribution.isWhole && curve.high - curve.low <= MOST_WHOLE) return curve;
  const { min = NaN, max = NaN } = distribution;
  if (min === max) return { low: min, high: min };
  const { quantiles } = distribution;
  let [low, high] = [quantileAt(quantiles, 0.01), quantileAt(quantiles, 0.99)];
  if (!(high > low)) [low, high] = [curve.quantile(0.01), curve.quantile(0.99)]; // nearly all is one number
  const room = ((high - low) * WIDER) / 2;
  return { low: Math.max(curve.low, low - room), high: Math.min(curve.high, high + room) };
}

/** How many bars fill a range: one for each whole number, else as many as the eye can tell apart. */
export function barsOf(range: readonly [number, number], all: readonly Distribution[], most = 40): number {
  const width = Math.round(range[1] - range[0]);
  return all.every(({ isWhole }) => isWhole) && width <= MOST_WHOLE ? Math.max(1, width) : most;
}

/** Shares of all finite elements per bar. */
export function masses(distribution: Distribution, [low, high]: readonly [number, number], bars: number): Float64Array {
  const mass = new Float64Array(bars);
  const curve = cumulated(distribution);
  if (!curve) return mass;
  const { min = NaN, max = NaN } = distribution;
  if (min === max && !distribution.isWhole) {
    const bar = Math.floor(((min - low) / (high - low)) * bars);
    if (bar >= 0 && bar < bars) mass[bar] = 1 - curve.zeros;
    return mass;
  }
  let before = curve.at(low);
  for (let bar = 0; bar < bars; bar++) {
    const upTo = curve.at(low + ((bar + 1) * (high - low)) / bars);
    mass[bar] = Math.max(0, upTo - before);
    before = upTo;
  }
  return mass;
}

/** What the bars do not show: shares of all finite elements. */
export interface Outside {
  readonly zeros: number;
  readonly below: number;
  readonly above: number;
}

export function outsideOf(distribution: Distribution, [low, high]: readonly [number, number]): Outside {
  const curve = cumulated(distribution);
  if (!curve) return { zeros: total(distribution.histogram) > 0 ? 1 : 0, below: 0, above: 0 };
  const { min = NaN, max = NaN } = distribution;
  if (min === max) return { zeros: curve.zeros, below: 0, above: 0 };
  const most = 1 - curve.zeros;
  return { zeros: curve.zeros, below: curve.at(low), above: Math.max(0, most - curve.at(high)) };
}
