/** Series and histograms over steps, ready to draw: one curve per trial and type of step. Pure. */
import type { HistogramTable, SeriesTable } from "../../api/tables";
import type { Histogram } from "../../model/histogram";
import type { Curve } from "../curves/curves";

export interface TrialSeries {
  readonly trial: string;
  readonly color: string;
  readonly table: SeriesTable | null;
}

/** Colour says which trial, dashes say that it is not the first type. `type` null: all types, each as its own curve. */
export function curvesOf(all: readonly TrialSeries[], statistic: string, type: string | null): Curve[] {
  const present = all.filter((series) => series.table && series.table.values[statistic]);
  const types = [...new Set(present.flatMap(({ table }) => (table ? table.types : [])))];
  const shown = type === null ? types : types.filter((name) => name === type);
  return present.flatMap(({ trial, color, table }) => {
    if (!table) return [];
    return shown.flatMap((name) => {
      const rows = rowsWhere(table.types, name);
      if (rows.length === 0) return [];
      const names = [present.length > 1 ? trial : "", types.length > 1 ? name : ""].filter(Boolean);
      const [x, y] = [taken(table.steps, rows), taken(table.values[statistic], rows)];
      const band = statistic === "q50" ? bandOf(table, rows) : undefined;
      const label = names.join(" · ") || statistic;
      return [{ label, color, x, y, dashed: shown.indexOf(name) > 0, ...(band ? { band } : {}) }];
    });
  });
}

/** Half of all elements lie between the quartiles around the median. */
function bandOf(table: SeriesTable, rows: readonly number[]): { low: Float64Array; high: Float64Array } | undefined {
  const { q25, q75 } = table.values;
  return q25 && q75 ? { low: taken(q25, rows), high: taken(q75, rows) } : undefined;
}

/** What has to be asked for to draw a statistic. */
export const statisticsFor = (statistic: string): readonly string[] =>
  statistic === "q50" ? ["q50", "q25", "q75"] : [statistic];

const rowsWhere = (types: readonly string[], type: string): number[] =>
  types.flatMap((name, row) => (name === type ? [row] : []));

const taken = (values: Float64Array, rows: readonly number[]): Float64Array =>
  rows.length === values.length ? values : Float64Array.from(rows, (row) => values[row]);

/** The recorded step nearest to a place on the axis; of two the earlier. Null if there is none. */
export function nearestStep(steps: ArrayLike<number>, place: number): number | null {
  let best: number | null = null;
  for (let i = 0; i < steps.length; i++) {
    const closer = best === null || Math.abs(steps[i] - place) < Math.abs(best - place);
    if (closer) best = steps[i];
  }
  return best;
}

export interface TimeHistograms {
  /** Ascending. */
  readonly steps: Float64Array;
  readonly histograms: readonly Histogram[];
}

/** Those of steps that have a finite element. */
export function timeHistograms(table: HistogramTable, type: string | null): TimeHistograms {
  const found: { readonly step: number; readonly histogram: Histogram }[] = [];
  for (let row = 0; row < table.rows; row++) {
    if (type !== null && table.types[row] !== type) continue;
    const counts = table.counts(row);
    if (counts.length > 0) found.push({ step: table.steps[row], histogram: { first: table.first[row], counts } });
  }
  found.sort((a, b) => a.step - b.step);
  return {
    steps: Float64Array.from(found, ({ step }) => step),
    histograms: found.map(({ histogram }) => histogram),
  };
}
