/** One statistic of every tensor at every recorded step, as the strips in the boxes of the graph draw it. */
import { SHADE_ABSENT, shadeOf, type HeatScale } from "./heat";

export interface History {
  /** Where the columns begin and end, 0 … 1; one more than there are columns. */
  readonly edges: Float64Array;
  /** Where the shown step stands, 0 … 1; -1 if it is none of them. */
  readonly at: number;
  /** The column of the shown step; -1 if it is none of them. */
  readonly column: number;
  /** Of a tensor; null: nothing of it was recorded. */
  readonly line: (record: number) => HistoryLine | null;
}

export interface HistoryLine {
  readonly values: ArrayLike<number>;
  readonly states: ArrayLike<number>;
}

/** Columns reach half-way to their neighbours: recorded steps stand where they happened. */
export function columnsOf(steps: readonly number[]): Float64Array {
  const count = steps.length;
  const edges = new Float64Array(count + 1);
  if (count === 0) return edges;
  const [first, last] = [steps[0], steps[count - 1]];
  const span = last - first || 1;
  for (let i = 1; i < count; i++) edges[i] = ((steps[i - 1] + steps[i]) / 2 - first) / span;
  edges[count] = 1;
  return edges;
}

/** Shades per pixel of a strip. Steps that share a pixel: the worst is seen, NaN first, then what is furthest away. */
export function stripShades(
  history: History, line: HistoryLine, scale: HeatScale, width: number, worst: (a: number, b: number) => number,
): Uint16Array {
  const shades = new Uint16Array(width).fill(SHADE_ABSENT);
  const drawn = new Uint8Array(width);
  const { edges } = history;
  for (let column = 0; column + 1 < edges.length; column++) {
    const from = Math.min(width - 1, Math.floor(edges[column] * width));
    const to = Math.max(from + 1, Math.min(width, Math.floor(edges[column + 1] * width)));
    const shade = shadeOf(line.values[column], line.states[column], scale);
    for (let x = from; x < to; x++) {
      shades[x] = drawn[x] ? worst(shades[x], shade) : shade;
      drawn[x] = 1;
    }
  }
  return shades;
}
