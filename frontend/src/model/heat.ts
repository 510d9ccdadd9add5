/** From numbers to shades: where a value stands on a scale that the whole graph shares. */
import { shortNumber } from "./numbers";

/** What is known about the value of one tensor. */
export const ABSENT = 0; // not recorded, or it has no gradient: unlike zero
export const VALUE = 1;
export const HAS_NAN = 2;
export const HAS_INF = 3;
export const NOTHING = 4; // there is a number, and nothing to compare it with
export type HeatState = typeof ABSENT | typeof VALUE | typeof HAS_NAN | typeof HAS_INF;

/** One statistic of every tensor of a graph, by position in the source. */
export interface Heat {
  readonly values: Float64Array;
  readonly states: Uint8Array;
  /** How its numbers are written, where plain ones would mislead: `×8`. */
  readonly words?: (value: number, digits: number) => string;
}

/** The number of one tensor, as it stands in its box. */
export const heatText = (heat: Heat, record: number, digits = 3): string =>
  (heat.words ?? shortNumber)(heat.values[record], digits);

/** Shades 0 … 255 are steps of the colour map; these stand beside it. */
export const SHADE_ABSENT = 256;
export const SHADE_NAN = 257;
export const SHADE_INF = 258;
export const SHADE_ZERO = 259; // exactly zero on a logarithmic scale, where no step of the map is zero
export const SHADES = 260;

export type ScaleKind = "linear" | "log" | "diverging";

export interface HeatScale {
  readonly kind: ScaleKind;
  readonly low: number;
  readonly high: number;
  /** Around zero, straight: of numbers that are orders of magnitude already. */
  readonly isEven?: boolean;
  /** 0 … 1 for a finite value; ends are clamped. */
  readonly place: (value: number) => number;
}

const MOST_DECADES = 12; // below that a value is as good as the lowest

export function linearScale(low: number, high: number): HeatScale {
  const span = high - low || 1;
  return { kind: "linear", low, high, place: (value) => clamp((value - low) / span) };
}

export function logScale(low: number, high: number): HeatScale {
  const floor = Math.log(low);
  const span = Math.log(high) - floor || 1;
  return { kind: "log", low, high, place: (value) => (value <= low ? 0 : clamp((Math.log(value) - floor) / span)) };
}

/**
 * Symmetric around zero; straight near it and logarithmic outside, so that one large value does not turn all others
 * into the same neutral grey.
 */
export function divergingScale(reach: number): HeatScale {
  const bend = reach / 20 || 1;
  const whole = Math.asinh(reach / bend) || 1;
  const place = (value: number): number => clamp(0.5 + Math.asinh(value / bend) / whole / 2);
  return { kind: "diverging", low: -reach, high: reach, place };
}

/** The value below which a share of the positive numbers lies; of many only every n-th is looked at. */
function lowQuantile(heats: readonly Heat[], share: number): number {
  const count = heats.reduce((sum, heat) => sum + heat.values.length, 0);
  const every = Math.max(1, Math.ceil(count / 20_000));
  const looked: number[] = [];
  for (const { values, states } of heats) {
    for (let i = 0; i < values.length; i += every) if (states[i] === VALUE && values[i] > 0) looked.push(values[i]);
  }
  const sorted = Float64Array.from(looked).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}

/** Symmetric around zero and straight: for numbers that are orders of magnitude already. */
export function evenScale(reach: number): HeatScale {
  const place = (value: number): number => clamp(0.5 + value / reach / 2);
  return { kind: "diverging", isEven: true, low: -reach, high: reach, place };
}

/**
 * The scale that shows these numbers best; `wish` overrules the choice where it makes sense.
 * Of many steps, `trim` is the share of the smallest numbers that must not stretch a logarithmic scale.
 */
export function fitScale(heats: readonly Heat[], wish: ScaleKind | "auto" = "auto", trim = 0): HeatScale {
  const { least, most, smallest } = extent(heats);
  if (most < least) return linearScale(0, 1);
  const reach = Math.max(Math.abs(least), Math.abs(most));
  if (wish === "diverging" || (wish === "auto" && least < 0 && most > 0)) return divergingScale(reach || 1);
  const canBeLog = least >= 0 && smallest < Infinity;
  if (canBeLog && (wish === "log" || (wish === "auto" && most / smallest > 30))) {
    const usual = trim > 0 ? lowQuantile(heats, trim) : 0;
    const low = Math.max(smallest, usual, most / 10 ** MOST_DECADES);
    return low < most ? logScale(low, most) : logScale(most / 10, most);
  }
  if (least === most) return linearScale(Math.min(0, least), Math.max(0, most) || 1);
  return linearScale(least, most);
}

function extent(heats: readonly Heat[]) {
  let least = Infinity;
  let most = -Infinity;
  let smallest = Infinity; // of those above zero
  for (const { values, states } of heats) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (states[i] !== VALUE || !Number.isFinite(value)) continue;
      if (value < least) least = value;
      if (value > most) most = value;
      if (value > 0 && value < smallest) smallest = value;
    }
  }
  return { least, most, smallest };
}

export function shadeOf(value: number, state: number, scale: HeatScale): number {
  if (state === ABSENT || state === NOTHING) return SHADE_ABSENT;
  if (state === HAS_NAN || Number.isNaN(value)) return SHADE_NAN;
  if (state === HAS_INF || !Number.isFinite(value)) return SHADE_INF;
  if (value === 0 && scale.kind === "log") return SHADE_ZERO;
  return Math.round(scale.place(value) * 255);
}

/** Shades of all tensors at once. */
export function shadesOf(heat: Heat, scale: HeatScale): Uint16Array {
  const shades = new Uint16Array(heat.values.length);
  for (let i = 0; i < shades.length; i++) shades[i] = shadeOf(heat.values[i], heat.states[i], scale);
  return shades;
}

/** Where many values share one spot, the one that must not be missed: NaN, Inf, then the largest, zero, nothing. */
export function worstShade(a: number, b: number): number {
  return importance(a) >= importance(b) ? a : b;
}

function importance(shade: number): number {
  if (shade === SHADE_NAN) return 1003;
  if (shade === SHADE_INF) return 1002;
  if (shade === SHADE_ZERO) return 0;
  return shade === SHADE_ABSENT ? -1 : shade + 1;
}

/** An empty heat of the right size, to be filled in by whoever reads a step. */
export function emptyHeat(count: number): Heat {
  return { values: new Float64Array(count).fill(NaN), states: new Uint8Array(count) };
}

/** What to note for one row of statistics: those leave non-finite elements out, so their counts decide. */
export function heatState(value: number, nans: number, infs: number): HeatState {
  if (nans > 0) return HAS_NAN;
  if (infs > 0) return HAS_INF;
  if (Number.isNaN(value)) return ABSENT; // a statistic that is not defined here, as the mean of nothing
  return Number.isFinite(value) ? VALUE : HAS_INF;
}

const clamp = (t: number): number => (t < 0 ? 0 : t > 1 ? 1 : t);
