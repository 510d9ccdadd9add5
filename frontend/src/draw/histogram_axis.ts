/** Where values stand in a histogram: by bins (logarithmic on both sides of zero) or by their size. Pure. */
import {
  binRange, binSpan, decadeBins, onBinAxis, onLinearAxis, valueSpan, type Histogram,
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
  return kind === "log" ? binAxis(first, last) : linearAxis(histograms, slices);
}

function binAxis(first: number, last: number): HistogramAxis {
  // A single bin still gets neighbours: a lone full-width bar would look like a uniform distribution.
  const from = Math.max(0, first - 2);
  const to = Math.min(256, last + 2);
  const slices = to - from + 1;
  return {
    kind: "log",
    slices,
    range: (slice) => binRange(from + slice),
    mass: (histogram) => onBinAxis(histogram, from, to),
    ticks: decadeBins(from, to).map(([bin, value]) => ({ at: (bin - from + 0.5) / slices, text: shortPower(value) })),
    low: binRange(from)[0],
    high: binRange(to)[1],
  };
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
