/** Units in the order of a statistic: the columns of a slice change places, and know where they came from. */
import type { Slice } from "./slices";
import { sameShape } from "./spread";

export const ORDERS = ["mean", "std", "abs_max"] as const;
export type Order = (typeof ORDERS)[number];

export const isOrder = (text: string): text is Order => (ORDERS as readonly string[]).includes(text);

/** Positions, highest score first. What is not a number comes before everything else: it must not be missed. */
export function orderOf(scores: ArrayLike<number>): Int32Array {
  const order = Int32Array.from({ length: scores.length }, (_, i) => i);
  const weight = (i: number): number => (Number.isNaN(scores[i]) ? Infinity : scores[i]);
  return order.sort((a, b) => {
    const [left, right] = [weight(a), weight(b)];
    return left === right ? a - b : right > left ? 1 : -1;
  });
}

/** A statistic of every column over the rows in sight. */
export function columnScores(slice: Slice, statistic: Order): Float64Array {
  const scores = new Float64Array(slice.columns);
  for (let column = 0; column < slice.columns; column++) {
    let [sum, squares, most] = [0, 0, 0];
    let at = slice.offset + column * slice.columnStride;
    for (let row = 0; row < slice.rows; row++, at += slice.rowStride) {
      const value = slice.data[at];
      sum += value;
      squares += value * value;
      most = Math.max(most, Math.abs(value)); // keeps NaN
    }
    const mean = sum / slice.rows;
    // Differences of squares may come out below zero by a rounding.
    const variance = Math.max(0, squares / slice.rows - mean * mean);
    scores[column] = statistic === "mean" ? mean : statistic === "std" ? Math.sqrt(variance) : most;
  }
  return scores;
}

/**
 * The same from what is known about units over the whole batch: along one axis of the sample, averaged over the others
 * (the largest, for abs_max). Null if that axis is not one of the units.
 */
export function unitColumnScores(
  values: ArrayLike<number>,
  unitShape: readonly number[],
  sampleShape: readonly number[],
  axis: number,
  statistic: Order,
): Float64Array | null {
  if (axis < 0) return null;
  const whole = sameShape(unitShape, sampleShape);
  if (!whole && (unitShape.length !== 1 || unitShape[0] !== sampleShape[axis])) return null;
  const along = whole ? axis : 0;
  const size = unitShape[along];
  const inner = unitShape.slice(along + 1).reduce((a, b) => a * b, 1);
  const scores = new Float64Array(size);
  for (let i = 0; i < values.length; i++) {
    const place = Math.floor(i / inner) % size;
    if (statistic !== "abs_max") scores[place] += values[i] / (values.length / size);
    else scores[place] = Math.max(scores[place], values[i]);
  }
  return scores;
}

/** A copy with its columns in this order. */
export function withColumns(slice: Slice, order: ArrayLike<number>): Slice {
  const { rows } = slice;
  const columns = order.length;
  const data = new Float32Array(rows * columns);
  for (let row = 0, to = 0; row < rows; row++) {
    const from = slice.offset + row * slice.rowStride;
    for (let column = 0; column < columns; column++) data[to++] = slice.data[from + order[column] * slice.columnStride];
  }
  return { data, rows, columns, offset: 0, rowStride: columns, columnStride: 1 };
}
