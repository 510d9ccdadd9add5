/** Noisy curves made readable. */

/**
 * An exponential average: each value counts `factor` times less than the next one. It is corrected for its beginning,
 * so that it starts at the first value instead of creeping up from zero. Gaps stay gaps, and do not count.
 */
export function smoothed(values: ArrayLike<number>, factor: number): Float64Array {
  const result = new Float64Array(values.length).fill(NaN);
  const keep = Math.min(Math.max(factor, 0), 0.999);
  let [sum, weight] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isFinite(value)) {
      result[i] = value;
      continue;
    }
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    result[i] = sum / weight;
  }
  return result;
}

const MOST_POINTS = 1000;

/** Over about how many points a factor averages. */
export const windowOf = (factor: number): number => 1 / (1 - Math.min(Math.max(factor, 0), 1 - 1 / MOST_POINTS));

/** The slider, 0 to 100, is logarithmic in the number of points: 10 and 100 are as far apart as 100 and 1,000. */
export function factorOf(position: number): number {
  const points = MOST_POINTS ** (Math.min(Math.max(position, 0), 100) / 100);
  return Number((1 - 1 / points).toFixed(4));
}

export function positionOf(factor: number): number {
  return Math.round((100 * Math.log(windowOf(factor))) / Math.log(MOST_POINTS));
}
