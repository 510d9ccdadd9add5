/** Heat of a graph from tables of numbers: as they are, against their own past, or one selection minus another. */
import { ABSENT, emptyHeat, evenScale, heatState, VALUE, type Heat, type HeatScale } from "./heat";
import { shortNumber } from "./numbers";
import type { GraphSource } from "./source";
import { recordKey } from "./union";

/** A table with one row per tensor. */
export interface TensorRows {
  readonly rows: number;
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly pass: ArrayLike<number>;
}

interface KnownRows {
  readonly source: GraphSource;
  readonly table: TensorRows;
  readonly of: string;
  readonly rows: Int32Array;
}

const MOST_KNOWN = 6;
const known: KnownRows[] = [];

/**
 * For each tensor of the graph the row that holds its numbers, -1 if there is none. Tables of one type of step nearly
 * always have the same rows: comparing them with the last ones takes a tenth of the time of finding all anew.
 */
export function rowsOfGraph(source: GraphSource, table: TensorRows, of: string): Int32Array {
  const found = known.find((entry) => entry.source === source && entry.of === of && sameRows(entry.table, table));
  if (found) return found.rows;
  const rows = findRows(source, table, of);
  known.unshift({ source, table, of, rows });
  known.length = Math.min(known.length, MOST_KNOWN);
  return rows;
}

function sameRows(a: TensorRows, b: TensorRows): boolean {
  if (a.rows !== b.rows) return false;
  if (a.node === b.node && a.role === b.role && a.of === b.of && a.pass === b.pass) return true;
  for (let row = 0; row < a.rows; row++) {
    if (a.pass[row] !== b.pass[row] || a.node[row] !== b.node[row]) return false;
    if (a.of[row] !== b.of[row] || a.role[row] !== b.role[row]) return false;
  }
  return true;
}

function findRows(source: GraphSource, table: TensorRows, of: string): Int32Array {
  const places = new Map<string, number>();
  for (let row = 0; row < table.rows; row++) {
    if (table.of[row] === of) places.set(recordKey(table.node[row], table.role[row], table.pass[row]), row);
  }
  return Int32Array.from(source.nodes, ({ node, role, pass }) => places.get(recordKey(node, role, pass)) ?? -1);
}

/** Numbers of one step, and how many of the elements behind each were not finite. */
export interface StepNumbers {
  readonly values: ArrayLike<number>;
  readonly nans: ArrayLike<number>;
  readonly infs: ArrayLike<number>;
}

export function heatOfStep(rows: Int32Array, { values, nans, infs }: StepNumbers): Heat {
  const heat = emptyHeat(rows.length);
  for (let i = 0; i < rows.length; i++) {
    if (rows[i] < 0) continue;
    heat.values[i] = values[rows[i]];
    heat.states[i] = heatState(heat.values[i], nans[rows[i]] || 0, infs[rows[i]] || 0);
  }
  return heat;
}

/** One statistic of all tensors over all steps; `values(row)` has one number per step, NaN where there is none. */
export interface StepMatrix extends TensorRows {
  readonly ordinals: readonly number[];
  readonly place: (ordinal: number) => number;
  readonly values: (row: number) => Float32Array;
}

/** One step of the matrix. What was not finite is not known here: it counts as no value. */
export function heatOfMatrix(rows: Int32Array, matrix: StepMatrix, ordinal: number): Heat {
  const heat = emptyHeat(rows.length);
  const place = matrix.place(ordinal);
  if (place < 0) return heat;
  for (let i = 0; i < rows.length; i++) {
    if (rows[i] < 0) continue;
    const value = matrix.values(rows[i])[place];
    heat.values[i] = value;
    heat.states[i] = heatState(value, 0, 0);
  }
  return heat;
}

const MOST_PAST = 32; // steps that a past is made of, spread over all of it: more would not change its middle
const MOST_DOUBLINGS = 20;

/** The steps before one, evenly thinned if they are many; `places` are places of steps in the matrix, ascending. */
export function pastPlaces(places: readonly number[], now: number): number[] {
  const past = places.filter((place) => place < now);
  if (past.length <= MOST_PAST) return past;
  return Array.from({ length: MOST_PAST }, (_, i) => past[Math.floor(((i + 1) * past.length) / MOST_PAST) - 1]);
}

/**
 * Every tensor against what is usual for it: how many times it has doubled since (negative: halved), or for a signed
 * statistic by how many of its usual deviations it has moved.
 */
export function heatAgainstPast(
  now: Heat,
  rows: Int32Array,
  matrix: StepMatrix,
  past: readonly number[],
  signed: boolean,
): Heat {
  const heat = emptyHeat(rows.length);
  const before = new Float64Array(past.length);
  for (let i = 0; i < rows.length; i++) {
    heat.states[i] = now.states[i];
    if (rows[i] < 0 || now.states[i] !== VALUE) continue;
    const values = matrix.values(rows[i]);
    let count = 0;
    for (const place of past) if (Number.isFinite(values[place])) before[count++] = values[place];
    if (count === 0) heat.states[i] = ABSENT;
    else heat.values[i] = change(now.values[i], before.subarray(0, count).sort(), signed);
  }
  return { ...heat, words: signed ? inDeviations : inFactors };
}

function change(value: number, sorted: Float64Array, signed: boolean): number {
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (value === middle) return 0;
  if (!signed) return limited(Math.log2(value / middle));
  // Half of a bell-shaped heap lies within 0.674 deviations of its middle.
  const quarter = (q: number): number => sorted[Math.floor(q * (sorted.length - 1))];
  const deviation = (quarter(0.75) - quarter(0.25)) / 1.349;
  return limited((value - middle) / deviation);
}

const limited = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.max(-MOST_DOUBLINGS, Math.min(MOST_DOUBLINGS, value));

/** Never so narrow that noise looks like news: twice, or three deviations, is the least that fills it. */
export function pastScale(heat: Heat): HeatScale {
  let reach = heat.words === inDeviations ? 3 : 1;
  heat.values.forEach((value, i) => {
    if (heat.states[i] === VALUE) reach = Math.max(reach, Math.ceil(Math.abs(value) - 1e-9));
  });
  return evenScale(reach);
}

/** `3` -> `×8`, `-1` -> `÷2`. */
export function inFactors(value: number, digits: number): string {
  const factor = 2 ** Math.abs(value);
  const text = factor < 100 ? String(Number(factor.toPrecision(Math.max(2, digits)))) : shortNumber(factor, digits);
  return text === "1" ? "×1" : `${value < 0 ? "÷" : "×"}${text}`;
}

export const inDeviations = (value: number, digits: number): string => `${shortNumber(value, digits)} σ`;

/** A − B, where both have a number; what is not finite in either stays visible. */
export function heatDifference(a: Heat, b: Heat): Heat {
  const heat = emptyHeat(a.values.length);
  for (let i = 0; i < heat.values.length; i++) {
    const [one, other] = [a.states[i], b.states[i]];
    if (one === ABSENT || other === ABSENT) continue;
    heat.states[i] = one !== VALUE ? one : other;
    heat.values[i] = a.values[i] - b.values[i];
  }
  return heat;
}

/**
 * What a scale is fitted to. The gradient of a loss with respect to itself is one by definition: a scale that reached
 * up to it would leave no colours for all the others.
 */
export function telling(heat: Heat, source: GraphSource, of: string | null): Heat {
  if (!of?.startsWith("gradient")) return heat;
  const states = heat.states.map((state, i) => (source.nodes[i].kind === "loss" ? ABSENT : state));
  return states.some((state) => state === VALUE) ? { ...heat, states } : heat;
}

/** 1 for tensors that the graph of a step has, by places of that graph in the union; null if it has all. */
export function presentIn(count: number, places: Uint32Array | undefined): Uint8Array | null {
  if (!places || places.length === count) return null;
  const present = new Uint8Array(count);
  for (const place of places) present[place] = 1;
  return present;
}

/** The same, for a step whose graph is not part of the union: what it has numbers of. */
export function presentRows(source: GraphSource, table: TensorRows): Uint8Array {
  const there = new Set<string>();
  for (let row = 0; row < table.rows; row++) there.add(recordKey(table.node[row], table.role[row], table.pass[row]));
  return Uint8Array.from(source.nodes, ({ node, role, pass }) => (there.has(recordKey(node, role, pass)) ? 1 : 0));
}
