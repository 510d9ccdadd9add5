/** Where values stand in a histogram: by bins (logarithmic on both sides of zero) or by their size. Pure. */
import {
  addUp, BINS, binRange, binSpan, decadeBins, onLinearAxis, total, valueSpan, ZERO_BIN, type Histogram,
} from "../model/histogram";
import { shortNumber } from "../model/numbers";
import { roundTicks } from "./axis";

export type AxisKind = "log" | "linear";

export interface HistogramAxis {
  readonly kind: AxisKind;
  readonly slices: number;
  /** Lower and upper end of a slice. */
  readonly range: (slice: number) => [number, number];
  /** Fractions of the whole per slice. */
  readonly mass: (histogram: Histogram) => Float64Array;
  /** Place along the axis, 0 … 1, and what to write there. */
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
  readonly low: number;
  readonly high: number;
}

/** One axis for all of them, so that they can be compared. null if there is nothing to show. */
export function histogramAxis(kind: AxisKind, histograms: readonly Histogram[], slices = 64): HistogramAxis | null {
  const [first, last] = binSpan(histograms);
  if (last < first) return null;
  return kind === "log" ? binAxis(first, last, histograms) : linearAxis(histograms, slices);
}

/** Mass next to zero that need not be told apart: without this, most of the axis would be empty decades. */
const SLIVER = 0.002;

function binAxis(first: number, last: number, histograms: readonly Histogram[]): HistogramAxis {
  // A single bin still gets neighbours: a lone full-width bar would look like a uniform distribution.
  const from = Math.max(0, first - 2);
  const to = Math.min(BINS - 1, last + 2);
  const reach = Math.max(ZERO_BIN - from, to - ZERO_BIN);
  const near = from < ZERO_BIN && to > ZERO_BIN ? smallestStep(histograms, reach) : 0;
  const below = Math.max(1, ZERO_BIN - from - near); // bars left of zero
  const above = Math.max(1, to - ZERO_BIN - near);
  const isFolded = near > 0;
  const slices = isFolded ? below + 1 + above : to - from + 1;
  const binAt = (slice: number): number => {
    if (!isFolded) return from + slice;
    if (slice === below) return ZERO_BIN;
    return slice < below ? from + slice : Math.min(to, ZERO_BIN + near + slice - below);
  };
  const sliceOf = (bin: number): number => {
    if (!isFolded) return bin - from;
    if (bin === ZERO_BIN) return below;
    return bin < ZERO_BIN ? Math.min(bin - from, below - 1) : below + Math.max(1, bin - ZERO_BIN - near);
  };
  const range = (slice: number): [number, number] => {
    const [low, high] = binRange(binAt(slice));
    if (!isFolded) return [low, high];
    return slice === below - 1 ? [low, 0] : slice === below + 1 ? [0, high] : [low, high];
  };
  const isShown = (bin: number): boolean => !isFolded || bin === ZERO_BIN || Math.abs(bin - ZERO_BIN) > near;
  return {
    kind: "log",
    slices,
    range,
    mass: (histogram) => massOf(histogram, from, to, slices, sliceOf),
    ticks: decadeBins(from, to)
      .filter(([bin]) => isShown(bin))
      .map(([bin, value]) => ({ at: (sliceOf(bin) + 0.5) / slices, text: shortPower(value) })),
    low: binRange(from)[0],
    high: binRange(to)[1],
  };
}

/** How many of the smallest magnitudes, on either side of zero, hold next to nothing; two of them stay as distance. */
function smallestStep(histograms: readonly Histogram[], reach: number): number {
  const { first, counts } = addUp(histograms);
  const limit = total({ first, counts }) * SLIVER;
  const at = (bin: number): number => Number(counts[bin - first] ?? 0);
  let [near, inside] = [0, 0];
  while (near < reach - 2) {
    inside += at(ZERO_BIN - near - 1) + at(ZERO_BIN + near + 1);
    if (inside > limit) break;
    near++;
  }
  return Math.max(0, near - 2);
}

function massOf(
  histogram: Histogram, from: number, to: number, slices: number, sliceOf: (bin: number) => number,
): Float64Array {
  const mass = new Float64Array(slices);
  const { first, counts } = histogram;
  const whole = total(histogram) || 1;
  const last = Math.min(counts.length - 1, to - first);
  for (let i = Math.max(0, from - first); i <= last; i++) mass[sliceOf(first + i)] += Number(counts[i]) / whole;
  return mass;
}

function linearAxis(histograms: readonly Histogram[], slices: number): HistogramAxis {
  const [least, most] = valueSpan(histograms);
  const reach = Math.max(Math.abs(least), Math.abs(most)) || 1;
  // Around zero the ends are made equal, so that "more on the positive side" is seen as such.
  const [low, high] = least < 0 && most > 0 ? [-reach, reach] : least === most ? [-reach, reach] : [least, most];
  const width = (high - low) / slices;
  return {
    kind: "linear",
    slices,
    range: (slice) => [low + slice * width, low + (slice + 1) * width],
    mass: (histogram) => onLinearAxis(histogram, low, high, slices),
    ticks: roundTicks(low, high, 4).map((value) => ({ at: (value - low) / (high - low), text: shortNumber(value) })),
    low,
    high,
  };
}

function shortPower(value: number): string {
  if (value === 0) return "0";
  const power = Math.round(Math.log10(Math.abs(value)));
  const text = power >= -2 && power <= 3 ? String(10 ** power) : `1e${power}`;
  return (value < 0 ? "−" : "") + (power < 0 && power >= -2 ? (10 ** power).toFixed(-power) : text);
}
