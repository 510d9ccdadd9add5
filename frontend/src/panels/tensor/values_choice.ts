/** Which slice of raw values is on screen: what was chosen, as far as the tensor allows. Pure. */
import { defaultChoice, type SliceChoice } from "../../model/slices";

export interface ValuesWish {
  /** Rows and columns; null: nobody chose. */
  readonly axes: readonly number[] | null;
  readonly index: readonly number[];
}

/** `sampleAt` is the place of the chosen sample along the first axis; -1: none is chosen, or there is no such axis. */
export function rawChoice(shape: readonly number[], wish: ValuesWish, sampleAt: number): SliceChoice {
  const { rows, columns } = axesOf(shape, wish.axes, sampleAt >= 0);
  const at = shape.map((size, axis) => Math.max(0, Math.min(size - 1, wish.index[axis] ?? 0)));
  if (sampleAt >= 0) at[0] = sampleAt;
  return { rows, columns, at };
}

function axesOf(shape: readonly number[], axes: readonly number[] | null, oneSample: boolean) {
  const rank = shape.length;
  const fits = (axis: number): boolean => Number.isInteger(axis) && axis >= 0 && axis < rank;
  if (axes && axes.length === 2 && axes.every(fits) && axes[0] !== axes[1]) return { rows: axes[0], columns: axes[1] };
  // One sample alone shows its own two last axes; a vector stays among the other samples, which say what is usual.
  if (oneSample && rank >= 3) return { rows: rank - 2, columns: rank - 1 };
  return defaultChoice(shape);
}

/** What to remember of a choice: axes only if they are not the usual ones. */
export function wishOf(shape: readonly number[], choice: SliceChoice, sampleAt: number): ValuesWish {
  const usual = axesOf(shape, null, sampleAt >= 0);
  const isUsual = usual.rows === choice.rows && usual.columns === choice.columns;
  return { axes: isUsual ? null : [choice.rows, choice.columns], index: choice.at };
}

/** The first axis of raw values holds samples; the others are those of the tensor, without its batch. */
export function axisNames(rank: number, batchDim: number, hasSamples: boolean): string[] {
  if (!hasSamples) return Array.from({ length: rank }, (_, axis) => `axis ${axis}`);
  const rest = Array.from({ length: rank }, (_, axis) => axis).filter((axis) => axis !== batchDim);
  return ["sample", ...rest.map((axis) => `axis ${axis}`)];
}

/** Axes of what is left of a tensor without its batch. */
export const unitAxisNames = (rank: number, batchDim: number, unitRank: number): string[] => {
  const names = axisNames(rank, batchDim, true).slice(1);
  return names.length === unitRank ? names : Array.from({ length: unitRank }, () => "feature");
};
