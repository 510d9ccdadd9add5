/** A two-dimensional look at a tensor of any rank: two axes are spread out, one place is chosen on all others. */

export interface SliceChoice {
  /** Axis down the page; -1 if the tensor has fewer than two. */
  readonly rows: number;
  /** Axis across the page; -1 for a scalar. */
  readonly columns: number;
  /** For every axis the chosen place; ignored on the two axes above. */
  readonly at: readonly number[];
}

/** Read in place: the tensor itself is never copied. */
export interface Slice {
  readonly data: ArrayLike<number>;
  readonly rows: number;
  readonly columns: number;
  readonly offset: number;
  readonly rowStride: number;
  readonly columnStride: number;
}

const LEAST_PICTURE = 32; // cells; the 3 × 3 of a kernel say less than its channels

/**
 * The last two axes, so that pictures and sequences open as what they are; a matrix has no others. Of small kernels the
 * first two, which are channels.
 */
export function defaultChoice(shape: readonly number[]): SliceChoice {
  const rank = shape.length;
  const at = shape.map(() => 0);
  if (rank < 2) return { rows: -1, columns: rank - 1, at };
  const isPicture = rank === 2 || shape[rank - 2] * shape[rank - 1] >= LEAST_PICTURE || shape[0] * shape[1] <= 1;
  return isPicture ? { rows: rank - 2, columns: rank - 1, at } : { rows: 0, columns: 1, at };
}

/** Keeps as much of a choice as another tensor allows, so that walking the graph does not reset the view. */
export function adaptChoice(choice: SliceChoice, shape: readonly number[]): SliceChoice {
  const fresh = defaultChoice(shape);
  const fits = choice.at.length === shape.length;
  if (!fits) return fresh;
  const at = choice.at.map((place, axis) => Math.min(place, Math.max(0, shape[axis] - 1)));
  return { ...choice, at };
}

/** Swaps axes where needed so that both stay different. */
export function chooseAxis(choice: SliceChoice, which: "rows" | "columns", axis: number): SliceChoice {
  const other = which === "rows" ? "columns" : "rows";
  const next = { ...choice, [which]: axis };
  return choice[other] === axis ? { ...next, [other]: choice[which] } : next;
}

export function sliceOf(data: ArrayLike<number>, shape: readonly number[], choice: SliceChoice): Slice {
  const strides = stridesOf(shape);
  let offset = 0;
  choice.at.forEach((place, axis) => {
    if (axis !== choice.rows && axis !== choice.columns) offset += place * strides[axis];
  });
  return {
    data,
    rows: choice.rows >= 0 ? shape[choice.rows] : 1,
    columns: choice.columns >= 0 ? shape[choice.columns] : 1,
    offset,
    rowStride: choice.rows >= 0 ? strides[choice.rows] : 0,
    columnStride: choice.columns >= 0 ? strides[choice.columns] : 0,
  };
}

/** NaN is a value; outside of the slice there is `undefined`. */
export function valueAt(slice: Slice, row: number, column: number): number | undefined {
  if (row < 0 || column < 0 || row >= slice.rows || column >= slice.columns) return undefined;
  return slice.data[slice.offset + row * slice.rowStride + column * slice.columnStride];
}

/** Indices of an element in the whole tensor, for `[3, 0, 17]` beside its value. */
export function indexOf(choice: SliceChoice, row: number, column: number): number[] {
  return choice.at.map((place, axis) => (axis === choice.rows ? row : axis === choice.columns ? column : place));
}

function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

/** Smallest and largest finite value, and how many are not finite. */
export function sliceExtent(slice: Slice): { low: number; high: number; nans: number; infs: number } {
  let [low, high, nans, infs] = [Infinity, -Infinity, 0, 0];
  for (let row = 0; row < slice.rows; row++) {
    let at = slice.offset + row * slice.rowStride;
    for (let column = 0; column < slice.columns; column++, at += slice.columnStride) {
      const value = slice.data[at];
      if (Number.isNaN(value)) nans++;
      else if (value === Infinity || value === -Infinity) infs++;
      else {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
  }
  return { low, high, nans, infs };
}
