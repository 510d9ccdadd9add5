/** Scales of colours, for one step or for all. */
import { divergingScale, fitScale, linearScale, logScale, type Heat, type HeatScale, type ScaleKind } from "./heat";

const TRIM = 0.02; // one tensor that is almost zero must not make all others look alike

/**
 * The scale of one step. Its kind follows from the statistic and its ends are round: colours of neighbouring steps
 * mean the same, unless the numbers have really moved.
 */
export function scaleFor(heats: readonly Heat[], kind: ScaleKind): HeatScale {
  const exact = fitScale(heats, kind, TRIM);
  if (exact.kind === "diverging") return divergingScale(roundUp(exact.high));
  if (exact.kind === "log") {
    const high = roundUp(exact.high);
    return logScale(Math.min(roundDown(exact.low), high / 10), high);
  }
  return exact.low >= 0 ? linearScale(0, roundUp(exact.high)) : linearScale(-roundUp(-exact.low), roundUp(exact.high));
}

/** Just above a power of ten is still that power: 1e-3 is stored as 0.0010000000474974513. */
const decade = (value: number): number => Math.round(Math.log10(value) * 1e6) / 1e6;

/** The next of 1, 2, 5, 10, 20, … */
export function roundUp(value: number): number {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(decade(value));
  const digit = [1, 2, 5, 10].find((step) => value <= step * power * (1 + 1e-6)) ?? 10;
  return Number((digit * power).toPrecision(1));
}

/** The one of 1, 2, 5, 10, 20, … before it. */
export function roundDown(value: number): number {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(decade(value));
  const digit = [5, 2, 1].find((step) => value >= step * power * (1 - 1e-6)) ?? 1;
  return Number((digit * power).toPrecision(1));
}
