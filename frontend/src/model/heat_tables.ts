/** Heat of a graph from tables of numbers: as they are, or one selection minus another. */
import { ABSENT, emptyHeat, heatState, VALUE, type Heat } from "./heat";
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
export function telling(heat: Heat, source: GraphSource, of: string | null, apart: Uint8Array): Heat {
  const isGradient = of?.startsWith("gradient") ?? false;
  const isOut = (i: number): boolean => Boolean(apart[i]) || (isGradient && source.nodes[i].kind === "loss");
  const states = heat.states.map((state, i) => (isOut(i) ? ABSENT : state));
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
