/**
 * Curves with more points than the screen has pixels: per column of pixels only the first, the lowest, the highest and
 * the last point are kept, so that the line looks the same and a lone outlier stays visible. Within its column a point
 * is moved to one of a few places, which all curves of the plot share: together they need one short list of x.
 */

export interface Thinned {
  readonly x: number[];
  /** Null is a gap. */
  readonly y: (number | null)[];
}

export interface Window {
  readonly from: number;
  readonly to: number;
  /** Pixels. */
  readonly columns: number;
  readonly log: boolean;
}

/** Whether a value has a place on the axis: NaN and infinities have none, nor what is not positive on a log axis. */
export function drawable(value: number | null | undefined, log: boolean): value is number {
  return typeof value === "number" && Number.isFinite(value) && (!log || value > 0);
}

/** First place whose x is at least `value`; `x` ascends. */
export function lowerBound(x: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Place of the point nearest to `value`; -1 if there is none. */
export function nearestPlace(x: ArrayLike<number>, value: number): number {
  const after = lowerBound(x, value);
  if (after === 0) return x.length > 0 ? 0 : -1;
  if (after === x.length) return after - 1;
  return value - x[after - 1] <= x[after] - value ? after - 1 : after;
}

/** The points to draw in a window. */
export function thinned(x: ArrayLike<number>, y: ArrayLike<number | null>, window: Window): Thinned {
  const [first, last] = inView(x, window);
  const out: Thinned = { x: [], y: [] };
  if (last - first < 4 * window.columns) {
    for (let i = first; i <= last; i++) add(out, x[i], drawable(y[i], window.log) ? y[i] : null);
    return out;
  }
  const perColumn = (window.to - window.from) / Math.max(1, window.columns);
  let i = first;
  while (i <= last) {
    const column = Math.floor((x[i] - window.from) / perColumn);
    const border = window.from + (column + 1) * perColumn;
    let end = i + 1;
    while (end <= last && x[end] < border) end++;
    addColumn(out, y, i, end, window.log, border - perColumn, perColumn);
    i = end;
  }
  return out;
}

const PLACES = 5; // in a column: first, lowest, highest, last, and a gap

function addColumn(
  out: Thinned, y: ArrayLike<number | null>, start: number, end: number, log: boolean, left: number, width: number,
): void {
  let [first, lowest, highest, last, gap] = [-1, -1, -1, -1, -1];
  let [low, high] = [Infinity, -Infinity];
  for (let i = start; i < end; i++) {
    const value = y[i];
    if (!drawable(value, log)) {
      if (gap < 0) gap = i;
      continue;
    }
    if (first < 0) first = i;
    if (value < low) [low, lowest] = [value, i];
    if (value > high) [high, highest] = [value, i];
    last = i;
  }
  const kept = [first, lowest, highest, last, gap].sort((a, b) => a - b);
  let place = 0;
  kept.forEach((i, n) => {
    if (i < 0 || i === kept[n - 1]) return;
    add(out, left + (width * place++) / PLACES, i === gap ? null : y[i]);
  });
}

function add(out: Thinned, x: number, y: number | null): void {
  out.x.push(x);
  out.y.push(y);
}

/** A band has no points of its own: per column its widest extent. */
export function thinnedBand(
  x: ArrayLike<number>, low: ArrayLike<number>, high: ArrayLike<number>, window: Window,
): { readonly x: number[]; readonly low: (number | null)[]; readonly high: (number | null)[] } {
  const out = { x: [] as number[], low: [] as (number | null)[], high: [] as (number | null)[] };
  const [first, last] = inView(x, window);
  const perColumn = last - first < 2 * window.columns ? 0 : (window.to - window.from) / Math.max(1, window.columns);
  let i = first;
  while (i <= last) {
    const column = perColumn ? Math.floor((x[i] - window.from) / perColumn) : 0;
    const border = window.from + (column + 1) * perColumn;
    let [under, over] = [Infinity, -Infinity];
    const start = i;
    do {
      if (drawable(low[i], window.log)) under = Math.min(under, low[i]);
      if (drawable(high[i], window.log)) over = Math.max(over, high[i]);
      i++;
    } while (perColumn && i <= last && x[i] < border);
    const whole = under <= over;
    out.x.push(perColumn ? border - perColumn : x[start]);
    out.low.push(whole ? under : null);
    out.high.push(whole ? over : null);
  }
  return out;
}

/** First and last point to draw: one beyond each end of the window, so that lines run to the border. */
function inView(x: ArrayLike<number>, { from, to }: Window): [number, number] {
  return [Math.max(0, lowerBound(x, from) - 1), Math.min(x.length - 1, lowerBound(x, to) + 1)];
}

/** The same points with ascending x: a resumed run may have gone back. */
export function ascending<Y extends ArrayLike<number | null>>(
  x: ArrayLike<number>, ys: readonly Y[],
): { readonly x: ArrayLike<number>; readonly ys: readonly ArrayLike<number | null>[] } {
  let sorted = true;
  for (let i = 1; i < x.length && sorted; i++) sorted = x[i] >= x[i - 1];
  if (sorted) return { x, ys };
  const order = Array.from({ length: x.length }, (_, i) => i).sort((a, b) => x[a] - x[b] || a - b);
  return { x: order.map((i) => x[i]), ys: ys.map((y) => order.map((i) => y[i])) };
}

export interface LeftOut {
  readonly notFinite: number;
  readonly notPositive: number;
}

const counted = new WeakMap<ArrayLike<number | null>, LeftOut>();

/** How many values have no place on the axis; not positive ones have one unless it is logarithmic. */
export function leftOut(y: ArrayLike<number | null>): LeftOut {
  const known = counted.get(y);
  if (known) return known;
  let [notFinite, notPositive] = [0, 0];
  for (let i = 0; i < y.length; i++) {
    const value = y[i];
    if (!drawable(value, false)) notFinite++;
    else if (value <= 0) notPositive++;
  }
  const found = { notFinite, notPositive };
  counted.set(y, found);
  return found;
}
