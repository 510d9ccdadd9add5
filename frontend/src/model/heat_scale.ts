/** Scales of colours, for one step or for all. */
import {
  divergingScale, evenScale, fitScale, linearScale, logScale, type Heat, type HeatScale, type ScaleKind,
} from "./heat";

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

/** The same kind of scale with ends that somebody has chosen. */
export function scaleWith(scale: HeatScale, range: readonly number[] | null): HeatScale {
  if (!range || range.length !== 2 || !(range[0] < range[1])) return scale;
  const [low, high] = range;
  if (scale.kind === "log") return low > 0 ? logScale(low, high) : scale;
  if (scale.kind === "linear") return linearScale(low, high);
  const reach = Math.max(Math.abs(low), Math.abs(high));
  return scale.isEven ? evenScale(reach) : divergingScale(reach);
}

export type End = "low" | "high";

/** The ends of a scale when one of them is moved by a part of its width. They never meet. */
export function moved(scale: HeatScale, end: End, part: number): [number, number] {
  let { low, high } = scale;
  if (scale.kind === "log") {
    const factor = 10 ** (part * Math.log10(high / low));
    if (end === "low") low = Math.min(low * factor, high / 1.1);
    else high = Math.max(high * factor, low * 1.1);
  } else if (scale.kind === "diverging") {
    const reach = Math.max(high * (1 + (end === "high" ? part : -part)), Number.MIN_VALUE * 1e3);
    return [-reach, reach];
  } else if (end === "low") low = Math.min(low + part * (high - low), high - (high - low) * 0.05);
  else high = Math.max(high + part * (high - low), low + (high - low) * 0.05);
  return [Number(low.toPrecision(3)), Number(high.toPrecision(3))];
}
