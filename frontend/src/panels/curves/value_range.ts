/** From where to where the axis of values goes: over all of them, or without outliers. */
import uPlot from "uplot";
import { prepared, type Curve } from "./data";
import { drawable } from "./thin";

export type Range = readonly [number, number];

/** A little room above and below; a constant gets some, too. */
export function valueRange(low: number | null, high: number | null, log: boolean): uPlot.Range.MinMax {
  if (low === null || high === null) return log ? [0.1, 10] : [0, 1];
  // Between two powers of ten, both are shown: otherwise there might be no label at all.
  if (log) return uPlot.rangeLog(low, high, 10, Math.floor(Math.log10(low)) === Math.floor(Math.log10(high)));
  return uPlot.rangeNum(low, high, 0.08, true);
}

const EDGE = 0.02;
const FEW = 5;

export interface WithoutOutliers {
  /** The 2nd and the 98th percentile. */
  readonly percentiles: Range;
  /** They with a little room. */
  readonly axis: Range;
  /** How many values the axis leaves out. */
  readonly outside: number;
}

/**
 * Of the values in view; null if there are none. Faint curves repeat others and do not count. Ranks are rounded
 * inwards: also of ten values, the one that is far away does not set the axis. Of a handful, none is an outlier.
 */
export function withoutOutliers(curves: readonly Curve[], log: boolean, view: Range | null): WithoutOutliers | null {
  const sorted = Float64Array.from(curves.flatMap((curve) => (curve.faint ? [] : inView(curve, log, view)))).sort();
  if (sorted.length === 0) return null;
  const last = sorted.length - 1;
  const few = sorted.length < FEW;
  const low = sorted[few ? 0 : Math.ceil(EDGE * last)];
  const high = sorted[few ? last : Math.floor((1 - EDGE) * last)];
  const [from, to] = valueRange(low, high, log) as [number, number];
  const outside = sorted.filter((value) => value < from || value > to).length;
  return { percentiles: [low, high], axis: [from, to], outside };
}

function inView(curve: Curve, log: boolean, view: Range | null): number[] {
  const { x, y } = prepared(curve);
  const found: number[] = [];
  for (let i = 0; i < y.length; i++) {
    const value = y[i];
    if (drawable(value, log) && (view === null || (x[i] >= view[0] && x[i] <= view[1]))) found.push(value);
  }
  return found;
}
