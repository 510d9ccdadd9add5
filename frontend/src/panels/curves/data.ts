/** Curves as the plot wants them: one ascending x for all, thinned to what the screen can show. */
import uPlot from "uplot";
import { ascending, drawable, nearestPlace, lowerBound, thinned, thinnedBand, type Thinned, type Window } from "./thin";

export interface Curve {
  readonly label: string;
  /** Any CSS colour, `var(--trial-1)` too. */
  readonly color: string;
  readonly x: ArrayLike<number>;
  /** NaN and null are gaps. */
  readonly y: ArrayLike<number | null>;
  readonly dashed?: boolean;
  /** Drawn thin and pale: context for another curve, such as what a smoothed one was made of. */
  readonly faint?: boolean;
  /** Whose it is, such as a trial: its curves are highlighted together. */
  readonly owner?: string;
  readonly band?: { readonly low: ArrayLike<number>; readonly high: ArrayLike<number> };
}

const GAPS_REACH = 2; // uPlot.JoinNullMode.Expand, which as a const enum has no value at run time

interface Prepared {
  readonly x: ArrayLike<number>;
  readonly y: ArrayLike<number | null>;
  readonly band: { readonly low: ArrayLike<number>; readonly high: ArrayLike<number> } | null;
}

/** By values: a curve is often made anew around the same arrays. */
const remembered = new WeakMap<Curve["y"], Prepared & { readonly of: Curve["x"]; readonly ofBand: Curve["band"] }>();

/** With ascending x; sorted at most once. */
export function prepared(curve: Curve): Prepared {
  let found = remembered.get(curve.y);
  if (!found || found.of !== curve.x || found.ofBand !== curve.band) {
    const { x, ys } = ascending(curve.x, curve.band ? [curve.y, curve.band.low, curve.band.high] : [curve.y]);
    const band = curve.band ? { low: ys[1] as ArrayLike<number>, high: ys[2] as ArrayLike<number> } : null;
    found = { x, y: ys[0], band, of: curve.x, ofBand: curve.band };
    remembered.set(curve.y, found);
  }
  return found;
}

const lines = new WeakMap<Prepared, { readonly window: string; readonly line: Thinned }>();

/** What is drawn of a line; remembered for one window, as while another curve beside it changes. */
function lineOf(points: Prepared, window: Window): Thinned {
  const name = Object.values(window).join();
  const known = lines.get(points);
  if (known?.window === name) return known.line;
  const line = thinned(points.x, points.y, window);
  lines.set(points, { window: name, line });
  return line;
}

/** First and last x of all curves; null if there is no point at all. */
export function extent(curves: readonly Curve[]): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const curve of curves) {
    const { x } = prepared(curve);
    if (x.length === 0) continue;
    low = Math.min(low, x[0]);
    high = Math.max(high, x[x.length - 1]);
  }
  return low <= high ? [low, high] : null;
}

/** Columns in the order of the series: x, low and high of each band, then all lines, which are drawn on top. */
export function columns(curves: readonly Curve[], window: Window): uPlot.AlignedData {
  const tables: uPlot.AlignedData[] = [];
  for (const curve of curves) {
    const { x, band } = prepared(curve);
    if (!band) continue;
    const thin = thinnedBand(x, band.low, band.high, window);
    tables.push([thin.x, thin.low, thin.high]);
  }
  for (const curve of curves) {
    const thin = lineOf(prepared(curve), window);
    tables.push([thin.x, thin.y]);
  }
  // A gap in one curve must reach over the places where only others have points.
  return tables.length === 0 ? [[]] : uPlot.join(tables, tables.map((table) => Array(table.length).fill(GAPS_REACH)));
}

export interface Reading {
  readonly curve: Curve;
  readonly x: number;
  readonly value: number | null;
  /** Of its band, if it has one. */
  readonly range: readonly [number, number] | null;
}

/** The point of each curve that is nearest to a place. */
export function readings(curves: readonly Curve[], place: number): Reading[] {
  return curves.flatMap((curve) => {
    const { x, y, band } = prepared(curve);
    const at = nearestPlace(x, place);
    return at < 0 ? [] : [{ curve, x: x[at], value: y[at], range: band && [band.low[at], band.high[at]] }];
  });
}

/** The nearest x at which some curve has a point; `place` itself if there is none. */
export function nearestPoint(curves: readonly Curve[], place: number): number {
  const all = readings(curves, place).map((reading) => reading.x);
  return all.reduce((best, x) => (Math.abs(x - place) < Math.abs(best - place) ? x : best), all[0] ?? place);
}

/** The next point of any curve to the right (1) or left (-1); null at the end. */
export function neighbour(curves: readonly Curve[], place: number, direction: 1 | -1, log: boolean): number | null {
  let best: number | null = null;
  for (const curve of curves) {
    const { x, y } = prepared(curve);
    let i = lowerBound(x, place);
    if (direction < 0) i--;
    while (i >= 0 && i < x.length && (x[i] === place || !drawable(y[i], log))) i += direction;
    if (i < 0 || i >= x.length) continue;
    if (best === null || (x[i] - best) * direction < 0) best = x[i];
  }
  return best;
}
