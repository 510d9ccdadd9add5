/** What uPlot is told about series, scales and axes. Colours are functions: they are asked for at every drawing. */
import uPlot from "uplot";
import { shortNumber } from "../../model/numbers";
import { durationText, stepTick, TIME_STEPS } from "./axes";
import type { Curve } from "./data";
import { valueRange, type Range } from "./value_range";

/** What can only be changed by making a new plot. */
export interface Structure {
  readonly curves: readonly Curve[];
  readonly log: boolean;
  readonly x: "step" | "time";
  readonly quiet: boolean;
  readonly zoomable: boolean;
}

/** What is asked for at every drawing. */
export interface Paints {
  /** Of the axis of values; null: all of them. */
  limits(): Range | null;

  line(curve: number): string;
  fill(curve: number): string;
  grid(): string;
  ink(): string;
  readonly font: string;
}

export function structureKey({ curves, log, x, quiet, zoomable }: Structure): string {
  const look = curves.map((curve) => `${curve.dashed ? "d" : ""}${curve.faint ? "f" : ""}${curve.band ? "b" : ""}`);
  return [log, x, quiet, zoomable, ...look].join();
}

interface Size {
  readonly width: number;
  readonly height: number;
}

export function optionsFor(structure: Structure, paints: Paints, size: Size): uPlot.Options {
  const { curves, quiet } = structure;
  const banded = curves.flatMap((curve, i) => (curve.band ? [i] : []));
  return {
    ...size,
    padding: quiet ? [2, 0, 2, 0] : [8, 18, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6, fill: (_, series) => paints.line(curveOf(series, banded.length)) },
      drag: { x: structure.zoomable, y: false, setScale: false, dist: 4 },
    },
    scales: {
      x: { time: false, auto: false },
      y: {
        distr: structure.log ? 3 : 1,
        range: (_, low, high) => limits(paints) ?? valueRange(low, high, structure.log),
      },
    },
    axes: axes(structure, paints),
    series: [
      {},
      ...banded.flatMap(() => [edge(), edge()]),
      ...curves.map((curve, i) => line(curve, () => paints.line(i))),
    ],
    bands: banded.map((curve, i) => ({ series: [2 * i + 2, 2 * i + 1], fill: () => paints.fill(curve) })),
  };
}

const limits = (paints: Paints): uPlot.Range.MinMax | null => {
  const range = paints.limits();
  return range && [range[0], range[1]];
};

/** Series are x, two for each band, then the lines. */
const curveOf = (series: number, bands: number): number => Math.max(0, series - 1 - 2 * bands);

const edge = (): uPlot.Series => ({ width: 0, points: { show: false } });

/** While one owner is highlighted, the curves of all others are pale. */
export const alphaOf = (curve: Curve, highlight: string | null): number =>
  (curve.faint ? 0.25 : 1) * (highlight === null || curve.owner === highlight ? 1 : 0.15);

function line(curve: Curve, color: () => string): uPlot.Series {
  return {
    width: curve.faint ? 1 : 1.5,
    alpha: alphaOf(curve, null),
    stroke: color,
    dash: curve.dashed ? [6, 4] : undefined,
    points: { size: 4, space: 12, stroke: color, fill: color, filter: lonePoints },
  };
}

/** A point between two gaps belongs to no line: without a dot it would be invisible. */
function lonePoints(plot: uPlot, series: number, show: boolean): number[] | null {
  if (show) return null;
  const values = plot.data[series] as (number | null | undefined)[];
  const lone: number[] = [];
  let [last, lastDrawn, connected] = [-1, false, false];
  values.forEach((value, i) => {
    if (value === undefined) return;
    const drawn = value !== null;
    if (last >= 0 && lastDrawn && !connected && !drawn) lone.push(last);
    connected = drawn && lastDrawn;
    [last, lastDrawn] = [i, drawn];
  });
  if (lastDrawn && !connected) lone.push(last);
  return lone;
}

function axes({ quiet, log, x }: Structure, paints: Paints): uPlot.Axis[] {
  if (quiet) return [{ show: false }, { show: false }];
  const shared = {
    stroke: () => paints.ink(),
    font: paints.font,
    ticks: { show: false },
    gap: 4,
  };
  return [
    {
      ...shared,
      size: 22,
      space: 64,
      grid: { show: false },
      border: { show: true, width: 1, stroke: () => paints.grid() },
      ...(x === "time" ? { incrs: [...TIME_STEPS] } : {}),
      values: (_, splits) => splits.map(x === "time" ? durationText : stepTick),
    },
    {
      ...shared,
      size: 52,
      space: 30,
      grid: { width: 1, stroke: () => paints.grid(), ...(log ? { filter: roundLines } : {}) },
      values: (_, splits) => splits.map((value) => (value === null ? "" : tick(value, log))),
    },
  ];
}

/** Lines at 1, 10, 100; at 2 and 5 as well if only few would remain. */
function roundLines(_: uPlot, splits: number[]): (number | null)[] {
  const only = (...leading: number[]): (number | null)[] =>
    splits.map((value) => (leading.includes(Number(value.toExponential(6).split("e")[0])) ? value : null));
  const decades = only(1);
  return decades.filter((value) => value !== null).length > 2 ? decades : only(1, 2, 5);
}

const tick = (value: number, log: boolean): string =>
  log ? shortNumber(value, 2) : shortNumber(Number(value.toPrecision(10)), 4);
