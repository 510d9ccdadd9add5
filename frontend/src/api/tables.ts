/** Answers of the server as the page reads them: typed columns, and rows found by name. */
import type { Table } from "@uwdata/flechette";
import { flat, has, listAt, lists, metadata, numberAt, numbers, textAt, texts } from "./columns";
import { namesIn, placesOf, plainOf, type Named, type Names } from "./named";
import { UNIT_STATISTICS, type StepFacts } from "./types";

const NO_NUMBERS = new Uint32Array(0);

/** All tensors of one step, one row each. */
export class StepTable implements Names {
  readonly facts: StepFacts;
  readonly rows: number;
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly pass: Float64Array;
  readonly #table: Table;
  readonly #named: Named;
  readonly #columns = new Map<string, Float64Array>();

  constructor(table: Table, named = namesIn(table)) {
    this.#table = table;
    this.#named = named;
    this.rows = named.table.numRows;
    this.facts = metadata<StepFacts>(table, "step", NO_FACTS);
    ({ node: this.node, role: this.role, of: this.of, pass: this.pass } = named.names);
  }

  /** A statistic (see the trial's statistics) of all rows. */
  statistic(name: string): Float64Array {
    let found = this.#columns.get(name);
    if (!found) this.#columns.set(name, (found = numbers(this.#table, name)));
    return found;
  }
  number(row: number, statistic: string): number {
    return this.#columns.get(statistic)?.[row] ?? numberAt(this.#table, statistic, row);
  }
  kind = (row: number): string => textAt(this.#named.table, "kind", row);
  dtype = (row: number): string => textAt(this.#named.table, "dtype", row);
  module = (row: number): string => textAt(this.#named.table, "module", row);
  source = (row: number): string => textAt(this.#named.table, "source", row);
  /** -1: it has no samples. */
  batchDim = (row: number): number => numberAt(this.#named.table, "batch_dim", row);
  shape = (row: number): number[] => Array.from(listAt(this.#named.table, "shape", row, NO_NUMBERS), Number);
  histFirst = (row: number): number => this.number(row, "hist_first");
  hist = (row: number): ArrayLike<number> => listAt(this.#table, "hist", row, NO_NUMBERS);
  /** Of a tensor of several ranks: why there is no whole; empty if there is one. */
  gap = (row: number): string => textAt(this.#table, "gap", row);
  /** Of how many ranks it is put together: then its quantiles are read off the histogram. */
  pieces = (row: number): number => numberAt(this.#table, "pieces", row) || 1;
  /** Whether raw values were kept. */
  raw = (row: number): boolean => row >= 0 && this.#table.getChild("raw").at(row) === true;

  /** The row of a tensor, -1 if the step has none. What is null is the first there is. */
  find(node: string, of: string, role: string | null = null, pass: number | null = null): number {
    const wanted = plainOf(of);
    for (const row of this.rowsOf(node)) {
      if (this.of[row] !== wanted) continue;
      if (role !== null && this.role[row] !== role) continue;
      if (pass === null || this.pass[row] === pass) return row;
    }
    return -1;
  }
  /** Everything recorded of a node at this step. */
  rowsOf(node: string): readonly number[] {
    return this.#named.places.get(node) ?? [];
  }
  /** Samples of the batch, as far as any tensor knows. */
  get batch(): number {
    return this.facts.categories.length || this.#named.batch;
  }
}

const NO_FACTS: StepFacts = {
  number: 0, ordinal: 0, type: "", time: 0, why: "", seconds: 0, graph: "", passes: 0,
  rawSamples: [], categories: [], config: {}, extra: {},
};

/** Statistics of one tensor over all steps. */
export interface SeriesTable {
  readonly steps: Float64Array;
  readonly types: readonly string[];
  /** Statistic -> one number per step. */
  readonly values: Readonly<Record<string, Float64Array>>;
}

export function seriesTable(table: Table, statistics: readonly string[]): SeriesTable {
  const values = Object.fromEntries(statistics.map((name) => [name, numbers(table, name)]));
  return { steps: numbers(table, "step"), types: texts(table, "type"), values };
}

/** Histograms of one tensor over all steps. */
export interface HistogramTable {
  readonly rows: number;
  readonly steps: Float64Array;
  readonly types: readonly string[];
  readonly first: Float64Array;
  readonly counts: (row: number) => ArrayLike<number>;
}

export function histogramTable(table: Table): HistogramTable {
  return {
    rows: table.numRows,
    steps: numbers(table, "step"),
    types: texts(table, "type"),
    first: numbers(table, "hist_first"),
    counts: lists(table, "hist", NO_NUMBERS),
  };
}

/** One statistic of all tensors over all steps. */
export interface HeatTable {
  readonly rows: number;
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly kind: readonly string[];
  readonly pass: Float64Array;
  /** The steps, in the order of the values. */
  readonly ordinals: readonly number[];
  /** Place of a step in every row of values; -1 if it is not there. */
  readonly place: (ordinal: number) => number;
  /** One number per step; NaN where a step has no such tensor. */
  readonly values: (row: number) => Float32Array;
}

export function heatTable(table: Table): HeatTable {
  const ordinals = metadata<number[]>(table, "ordinals", []);
  const places = new Map(ordinals.map((ordinal, i) => [ordinal, i]));
  const none = new Float32Array(ordinals.length).fill(NaN);
  return {
    rows: table.numRows,
    ...namesIn(table).names,
    kind: texts(table, "kind"),
    ordinals,
    place: (ordinal) => places.get(ordinal) ?? -1,
    values: lists(table, "values", none),
  };
}

/** One sample in all tensors of one step, one row each. */
export interface StepSampleTable {
  readonly rows: number;
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly pass: Float64Array;
  /** One of samples. */
  readonly statistic: (name: string) => Float64Array;
}

export function stepSampleTable(table: Table, named = namesIn(table)): StepSampleTable {
  return {
    rows: named.table.numRows,
    ...named.names,
    statistic: (name) => numbers(table, name),
  };
}

/** Samples of one tensor at one step: `sample`, and one column per statistic of samples. */
export type SampleTable = Readonly<Record<string, Float64Array>>;
/** Units of one tensor at one step, over the batch, flattened. */
export type UnitTable = Readonly<UnitColumns> & { readonly shape: readonly number[] };
type UnitColumns = Record<(typeof UNIT_STATISTICS)[number], Float64Array>;

export function sampleTable(table: Table): SampleTable {
  return Object.fromEntries((table.names as string[]).map((name) => [name, numbers(table, name)]));
}

export function unitTable(table: Table): UnitTable {
  const columns = Object.fromEntries(UNIT_STATISTICS.map((name) => [name, numbers(table, name)]));
  return { ...(columns as UnitColumns), shape: metadata(table, "shape", []) };
}

/** One metric: its own steps, ascending. */
export interface MetricCurve {
  readonly name: string;
  readonly type: string;
  readonly steps: Float64Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
  /** The range over the ranks whose mean it is; null if they do not differ, or there is one. */
  readonly range: { readonly low: Float64Array; readonly high: Float64Array } | null;
}

export interface MetricTable {
  readonly names: readonly string[];
  /** One per name, all types together. */
  readonly curves: ReadonlyMap<string, MetricCurve>;
  /** Name -> one per type of step, where there are several. */
  readonly byType: ReadonlyMap<string, readonly MetricCurve[]>;
}

export function metricTable(table: Table): MetricTable {
  const [steps, times, values] = ["step", "time", "value"].map((name) => numbers(table, name));
  const [names, types] = [texts(table, "name"), texts(table, "type")];
  const [lows, highs] = ["low", "high"].map((name) => (has(table, name) ? numbers(table, name) : null));
  const pick = (name: string, type: string, rows: readonly number[]): MetricCurve => {
    const of = (column: Float64Array): Float64Array => {
      const picked = new Float64Array(rows.length); // a loop: `from` with a function takes ten times as long
      for (let i = 0; i < rows.length; i++) picked[i] = column[rows[i]];
      return picked;
    };
    const range = lows && highs && rows.some((row) => lows[row] < highs[row]) ? { low: of(lows), high: of(highs) } : null;
    return { name, type, steps: of(steps), times: of(times), values: of(values), range };
  };
  const curves = new Map<string, MetricCurve>();
  const byType = new Map<string, readonly MetricCurve[]>();
  for (const [name, rows] of placesOf(names)) {
    curves.set(name, pick(name, "", rows));
    const split = placesOf(rows.map((row) => types[row]));
    if (split.size < 2) continue;
    byType.set(name, [...split].map(([type, places]) => pick(name, type, places.map((place) => rows[place]))));
  }
  return { names: [...curves.keys()], curves, byType };
}

/** One statistic of all tensors over all steps, and what kind of number each is. */
export interface LayersTable {
  readonly rows: number;
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly kind: readonly string[];
  readonly pass: Float64Array;
  /** The steps, in the order of the values. */
  readonly ordinals: readonly number[];
  /** Row after row. */
  readonly values: Float32Array;
  /** 0 absent, 1 a number, 2 some element is NaN, 3 some element is infinite. */
  readonly states: Uint8Array;
}

export function layersTable(table: Table): LayersTable {
  const ordinals = metadata<number[]>(table, "ordinals", []);
  const { names } = namesIn(table);
  const size = table.numRows * ordinals.length;
  return {
    rows: table.numRows, ...names, kind: texts(table, "kind"), ordinals,
    values: flat(table, "values", size, Float32Array), states: flat(table, "states", size, Uint8Array),
  };
}
