/** From logged metrics of several trials to plots: who gets which colour, which dash, which axis. */
import type { MetricCurve, MetricTable } from "../../api/tables";
import { nearestPoint, prepared, readings, type Curve } from "../curves/data";
import { smoothed } from "./smoothing";

export interface TrialMetrics {
  readonly trial: string;
  readonly color: string;
  /** Unix seconds of its beginning: with time on the axis, trials begin together. */
  readonly start: number;
  readonly table: MetricTable;
}

export interface Look {
  readonly smoothing: number;
  readonly x: "step" | "time";
  /** Trials that are not drawn; nothing else changes its look because of them. */
  readonly hidden: readonly string[];
}

export interface Plot {
  readonly name: string;
  readonly curves: readonly Curve[];
  /** Hidden trials have more. */
  readonly concealed: boolean;
}

/** One plot for one metric: trials by colour, types by dashes and shade. */
export function plotOf(name: string, trials: readonly TrialMetrics[], types: readonly string[], look: Look): Plot {
  const several = trials.length > 1;
  const curves = shown(trials, look).flatMap((trial) => {
    const found = curvesOf(trial.table, name);
    return found.flatMap((curve) => {
      const style = typeStyle(trial.color, types.indexOf(curve.type));
      const words = [several ? trial.trial : "", found.length > 1 ? curve.type : ""].filter(Boolean);
      return drawn(curve, { label: words.join(" · ") || name, ...style }, trial, look);
    });
  });
  return { name, curves: faintFirst(curves), concealed: concealed([name], trials, look) };
}

const shown = (trials: readonly TrialMetrics[], look: Look): TrialMetrics[] =>
  trials.filter(({ trial }) => !look.hidden.includes(trial));

const concealed = (names: readonly string[], trials: readonly TrialMetrics[], look: Look): boolean =>
  trials.some(({ trial, table }) => {
    return look.hidden.includes(trial) && names.some((name) => curvesOf(table, name).length > 0);
  });

/** What is only context lies below everything else. */
const faintFirst = (curves: readonly Curve[]): Curve[] => [
  ...curves.filter((curve) => curve.faint), ...curves.filter((curve) => !curve.faint),
];

/** Chosen metrics in one plot. With one trial each gets a hue of its own; with more, hues are the trials'. */
export function overlay(
  names: readonly string[], trials: readonly TrialMetrics[], types: readonly string[], look: Look,
): Plot {
  const several = trials.length > 1;
  const curves = shown(trials, look).flatMap((trial) => {
    let drawnSoFar = 0;
    return names.flatMap((name, place) => {
      const found = curvesOf(trial.table, name);
      return found.flatMap((curve) => {
        const style = several
          ? typeStyle(trial.color, drawnSoFar++)
          : typeStyle(hueOf(place), types.indexOf(curve.type));
        const words = [several ? trial.trial : "", name, found.length > 1 ? curve.type : ""].filter(Boolean);
        return drawn(curve, { label: words.join(" · "), ...style }, trial, look);
      });
    });
  });
  return { name: names.join(", "), curves: faintFirst(curves), concealed: concealed(names, trials, look) };
}

const curvesOf = (table: MetricTable, name: string): readonly MetricCurve[] => {
  const one = table.curves.get(name);
  return table.byType.get(name) ?? (one ? [one] : []);
};

const HUES = 6;
export const hueOf = (place: number): string => `var(--trial-${(place % HUES) + 1})`;

const SHADES = ["", "65%, var(--ink)", "55%, var(--panel)", "45%, var(--ink)"];

/** The same hue, darker or lighter: told apart also where a dense line hides its dashes. */
function shade(color: string, place: number): string {
  const mixed = SHADES[place % SHADES.length];
  return mixed ? `color-mix(in srgb, ${color} ${mixed})` : color;
}

/** First type solid, second dashed and in another shade, and so on. */
export function typeStyle(color: string, type: number): { readonly color: string; readonly dashed: boolean } {
  const place = Math.max(0, type);
  return { color: shade(color, place), dashed: (place + Math.floor(place / SHADES.length)) % 2 === 1 };
}

type Style = Pick<Curve, "label" | "color" | "dashed">;

/** A smoothed curve keeps what it was made of in sight, faintly. A mean over ranks lies in its range. */
function drawn(curve: MetricCurve, style: Style, { trial, start }: TrialMetrics, look: Look): Curve[] {
  const x = look.x === "time" ? curve.times.map((time) => time - start) : curve.steps;
  const plain: Curve = { ...style, owner: trial, x, y: curve.values };
  const line: Curve = curve.range ? { ...plain, band: curve.range } : plain;
  if (look.smoothing <= 0) return [line];
  return [{ ...plain, faint: true, dashed: false }, { ...line, y: smoothed(curve.values, look.smoothing) }];
}

interface Value {
  readonly label: string;
  readonly color: string;
  readonly value: number;
  /** Smallest and largest of the ranks. */
  readonly range: readonly [number, number] | null;
}

/** The last value of each curve, as the plot's header says it. */
export function lastValues(plot: Plot): Value[] {
  return plot.curves
    .filter((curve) => !curve.faint && curve.y.length > 0)
    .map(({ label, color, y, band }) => {
      const last = y.length - 1;
      return { label, color, value: y[last] ?? NaN, range: band ? [band.low[last], band.high[last]] : null };
    });
}

export interface PlaceValues {
  /** Of the point that is nearest to the wanted place. */
  readonly place: number;
  /** Whether all values are of exactly this place. */
  readonly exact: boolean;
  readonly values: readonly Value[];
}

/** The value of each curve nearest to a place; a curve that has not begun there, or has ended, has none. */
export function valuesAt(plot: Plot, place: number): PlaceValues {
  const there = plot.curves.filter((curve) => {
    const { x } = prepared(curve);
    return !curve.faint && x.length > 0 && place >= x[0] && place <= x[x.length - 1];
  });
  const read = readings(there, place);
  const nearest = nearestPoint(there, place);
  const values = read.map(({ curve: { label, color }, value, range }) => ({ label, color, value: value ?? NaN, range }));
  return { place: nearest, exact: read.every(({ x }) => x === nearest), values };
}
