/** How a number is spread over the samples of a batch, and where one sample stands among them. */

/** Of finite numbers only. */
export interface Spread {
  readonly count: number;
  readonly mean: number;
  /** Population: divided by the count. */
  readonly std: number;
  readonly low: number;
  readonly high: number;
  /** Positions of the lowest and the highest. */
  readonly lowAt: number;
  readonly highAt: number;
}

export function spreadOf(values: ArrayLike<number>): Spread | null {
  let [count, sum, lowAt, highAt] = [0, 0, -1, -1];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isFinite(value)) continue;
    count++;
    sum += value;
    if (lowAt < 0 || value < values[lowAt]) lowAt = i;
    if (highAt < 0 || value > values[highAt]) highAt = i;
  }
  if (count === 0) return null;
  const mean = sum / count;
  let squares = 0;
  for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) squares += (values[i] - mean) ** 2;
  return { count, mean, std: Math.sqrt(squares / count), low: values[lowAt], high: values[highAt], lowAt, highAt };
}

/**
 * Standard deviations away from the mean. Where all samples agree, whoever agrees with them is at 0 and whoever does
 * not is infinitely far away.
 */
export function zScore(value: number, mean: number, std: number): number {
  const away = value - mean;
  if (std > 0 || Number.isNaN(away) || Number.isNaN(std)) return away / std;
  return away === 0 ? 0 : away * Infinity;
}

/** Which part of the others is below a value, 0 … 1; those equal to it count half. */
export function rankIn(values: ArrayLike<number>, value: number): number {
  let [below, all] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i])) continue;
    all++;
    below += values[i] < value ? 1 : values[i] === value ? 0.5 : 0;
  }
  return all ? below / all : NaN;
}

/** On which axis of a sample (the batch left out) the units lie, if they are not all of its elements. */
export const featureAxis = (sampleShape: readonly number[]): number =>
  sampleShape.length >= 3 ? 0 : sampleShape.length - 1;

/** How many elements one unit stands for, and how often they repeat: the place of element i is (i / inner) % units. */
export function unitSteps(sampleShape: readonly number[], unitShape: readonly number[]) {
  const size = sampleShape.reduce((a, b) => a * b, 1);
  const units = unitShape.reduce((a, b) => a * b, 1);
  if (sameShape(sampleShape, unitShape)) return { inner: 1, units };
  const axis = featureAxis(sampleShape);
  if (size === 0 || axis < 0 || unitShape.length !== 1 || sampleShape[axis] !== unitShape[0]) return null;
  return { inner: sampleShape.slice(axis + 1).reduce((a, b) => a * b, 1), units };
}

/** Every element of a sample against its unit over the batch; null if the units are of another shape. */
export function unitScores(
  sample: ArrayLike<number>,
  sampleShape: readonly number[],
  units: { readonly shape: readonly number[]; readonly mean: ArrayLike<number>; readonly std: ArrayLike<number> },
): Float32Array | null {
  const steps = unitSteps(sampleShape, units.shape);
  if (!steps) return null;
  const scores = new Float32Array(sample.length);
  for (let i = 0; i < scores.length; i++) {
    const unit = Math.floor(i / steps.inner) % steps.units;
    scores[i] = zScore(sample[i], units.mean[unit], units.std[unit]);
  }
  return scores;
}

export const sameShape = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis]);
