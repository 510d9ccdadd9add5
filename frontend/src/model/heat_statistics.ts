/** Statistics that boxes can be coloured by: how they are called, and on which scale they make sense. */
import { divergingScale, fitScale, linearScale, logScale, type Heat, type HeatScale, type ScaleKind } from "./heat";

export interface HeatStatistic {
  readonly name: string;
  readonly label: string;
  readonly scale: ScaleKind;
  /** A count, shown as its share of all elements. */
  readonly isShare: boolean;
}

const of = (name: string, label: string, scale: ScaleKind, isShare = false): HeatStatistic =>
  ({ name, label, scale, isShare });

export const HEAT_STATISTICS: readonly HeatStatistic[] = [
  of("abs_mean", "abs mean", "log"),
  of("std", "std", "log"),
  of("mean", "mean", "diverging"),
  of("abs_max", "abs max", "log"),
  of("norm", "norm", "log"),
  of("min", "min", "diverging"),
  of("max", "max", "diverging"),
  of("zeros", "share of zeros", "linear", true),
  of("nans", "share of NaN", "linear", true),
  of("infs", "share of +infinity", "linear", true),
  of("neg_infs", "share of −infinity", "linear", true),
  of("q01", "1st percentile", "diverging"),
  of("q05", "5th percentile", "diverging"),
  of("q25", "25th percentile", "diverging"),
  of("q50", "median", "diverging"),
  of("q75", "75th percentile", "diverging"),
  of("q95", "95th percentile", "diverging"),
  of("q99", "99th percentile", "diverging"),
];

/** One that a newer page knew, or a mistyped address: shown as it is. */
export const heatStatistic = (name: string): HeatStatistic =>
  HEAT_STATISTICS.find((known) => known.name === name) ?? of(name, name.replaceAll("_", " "), "log");

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
