/** Equal bars on a straight axis of values, one axis for all distributions that are drawn on it. Pure. */
import { barsOf, masses, rangeOf, type Distribution } from "../model/density";
import { shortNumber } from "../model/numbers";
import { roundTicks } from "./axis";

export interface HistogramAxis {
  readonly slices: number;
  readonly low: number;
  readonly high: number;
  /** Lower and upper end of a slice. */
  readonly range: (slice: number) => [number, number];
  /** Shares of all finite elements per slice; exact zeros and what lies outside are in none. */
  readonly mass: (distribution: Distribution) => Float64Array;
  /** Place along the axis, 0 … 1, and what to write there. */
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
}

/** Null if there is nothing to show. */
export function histogramAxis(all: readonly Distribution[], most = 40): HistogramAxis | null {
  const range = rangeOf(all);
  if (!range) return null;
  const [low, high] = range;
  const slices = barsOf(range, all, most);
  const width = (high - low) / slices;
  return {
    slices,
    low,
    high,
    range: (slice) => [low + slice * width, low + (slice + 1) * width],
    mass: (distribution) => masses(distribution, range, slices),
    ticks: roundTicks(low, high, 5).map((value) => ({ at: (value - low) / (high - low), text: shortNumber(value) })),
  };
}

export type Heights = "linear" | "log";

const LOG_DECADES = 4;

/** Height of a bar, 0 … 1: straight, or by orders of magnitude below the highest. */
export function heightOf(mass: number, top: number, heights: Heights): number {
  if (mass <= 0 || top <= 0) return 0;
  if (heights === "linear") return mass / top;
  return Math.max(0, 1 + Math.log10(mass / top) / LOG_DECADES);
}
