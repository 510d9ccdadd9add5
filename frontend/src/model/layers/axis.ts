/** Where recorded steps stand: a column reaches half-way to its neighbours, or all are equally wide. */

export interface StepAxis {
  readonly steps: ArrayLike<number>;
  readonly width: number;
  readonly last: number;
  /** Pixels: column i is from edges[2 i] to edges[2 i + 1]. */
  readonly edges: Float64Array;
  /** Any step, recorded or not. */
  readonly x: (step: number) => number;
}

/** `steps` ascend; `last` is the newest step that anything is known of. */
export function stepAxis(steps: ArrayLike<number>, last: number, width: number, isEqual: boolean): StepAxis {
  const count = steps.length;
  const edges = new Float64Array(2 * count);
  const first = count ? Math.min(0, steps[0]) : 0;
  const from = count && steps[0] > (last - steps[0]) / 4 ? steps[0] - 0.5 : first; // one that was resumed begins late
  const span = Math.max(last, count ? steps[count - 1] : 0) + 0.5 - from || 1;
  const place = (step: number): number => Math.min(width, Math.max(0, ((step - from) / span) * width));
  for (let i = 0; i < count; i++) {
    edges[2 * i] = isEqual ? (i / count) * width : place(i ? (steps[i - 1] + steps[i]) / 2 : steps[i] - 0.5);
    edges[2 * i + 1] =
      isEqual ? ((i + 1) / count) * width : place(i < count - 1 ? (steps[i] + steps[i + 1]) / 2 : steps[i] + 0.5);
  }
  const x = (step: number): number => {
    if (!isEqual) return place(step);
    const after = lowerBound(steps, step);
    const middle = (i: number): number => ((i + 0.5) / count) * width;
    if (count === 0 || after >= count) return width;
    if (after === 0 || steps[after] === step) return middle(after);
    return middle(after - 1) + ((step - steps[after - 1]) / (steps[after] - steps[after - 1])) * (width / count);
  };
  return { steps, width, last, edges, x };
}

/** The first place whose number is not below. */
export function lowerBound(numbers: ArrayLike<number>, wanted: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The column whose middle is nearest to a pixel; -1 if there is none. */
export function columnAt({ edges }: StepAxis, x: number): number {
  const count = edges.length / 2;
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[2 * middle + 1] <= x) low = middle + 1;
    else high = middle;
  }
  return Math.min(low, count - 1);
}

/** The columns of a number of a step and of those around it: first and last that a finding was seen in. */
export function columnsOf({ steps }: StepAxis, from: number, to: number): readonly [number, number] {
  const first = Math.min(lowerBound(steps, from), steps.length - 1);
  const last = Math.min(Math.max(lowerBound(steps, to + 1) - 1, first), steps.length - 1);
  return [first, last];
}

/**
 * Which columns each pixel shows: from starts[x] to ends[x], not included. Where columns are narrower than a pixel
 * several share one; where there is none, both are the same.
 */
export interface PixelColumns {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

export function pixelColumns({ edges, width }: StepAxis, pixels: number): PixelColumns {
  const starts = new Int32Array(pixels);
  const ends = new Int32Array(pixels);
  const scale = pixels / (width || 1);
  const count = edges.length / 2;
  for (let i = 0; i < count; i++) {
    const from = Math.min(pixels - 1, Math.max(0, Math.round(edges[2 * i] * scale)));
    const to = Math.max(from + 1, Math.min(pixels, Math.round(edges[2 * i + 1] * scale)));
    for (let x = from; x < to; x++) {
      if (ends[x] === 0) starts[x] = i;
      ends[x] = i + 1;
    }
  }
  return { starts, ends };
}
