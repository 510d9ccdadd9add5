/** How places on the axes of curves are written. */
import { shortNumber, wholeNumber } from "../../model/numbers";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** Steps between ticks of a time axis, in seconds: round for a clock, not for a ruler. */
export const TIME_STEPS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map((n) => n * DAY),
];

/** `37 ms`, `12.5 s`, `5 min`, `1 h 20 min`, `2 d 3 h`. */
export function durationText(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size > 0 && size < 1) return `${sign}${shortNumber(size * 1000)} ms`;
  if (size < MINUTE) return `${sign}${shortNumber(size)} s`;
  const whole = Math.round(size);
  if (whole < HOUR) return sign + pair(Math.floor(whole / MINUTE), "min", whole % MINUTE, "s");
  if (whole < DAY) return sign + pair(Math.floor(whole / HOUR), "h", Math.round((whole % HOUR) / MINUTE), "min");
  return sign + pair(Math.floor(whole / DAY), "d", Math.round((whole % DAY) / HOUR), "h");
}

const pair = (big: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${unit}` : `${big} ${unit} ${small} ${smallUnit}`;

/** `2026-11-16 03:15`, by the clock of whoever looks. */
export function dateText(seconds: number): string {
  if (!(seconds > 0)) return "–";
  return new Date(seconds * 1000).toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "short" });
}

/** Ticks have little room: `500`, `12k`, `1.5M`. */
export function stepTick(step: number): string {
  const size = Math.abs(step);
  if (size >= 1e6) return `${Number((step / 1e6).toPrecision(6))}M`;
  if (size >= 1e4) return `${Number((step / 1e3).toPrecision(6))}k`;
  return Number.isInteger(step) ? String(step) : "";
}

/** Where a point is, as a sentence says it. */
export function placeText(x: number, axis: "step" | "time"): string {
  return axis === "step" ? `step ${wholeNumber(x)}` : `after ${durationText(x)}`;
}
