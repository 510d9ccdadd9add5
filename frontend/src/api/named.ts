/**
 * Which tensors the rows of a table are about. Nearly all steps of a trial have the same, so their names are told once:
 *
 *     steps/8              names and numbers, and a stamp of the names ─► kept under the stamp
 *     steps/9?names=stamp  numbers alone, if the names are the same    ─► put together with those that are kept
 */
import type { Table } from "@uwdata/flechette";
import { has, lists, metadata, numbers, texts } from "./columns";

/** The page says "value" for both: parameters' own values are recorded under another word. */
export const plainOf = (of: string): string => (of === "parameter" ? "value" : of);

export interface Names {
  readonly node: readonly string[];
  readonly role: readonly string[];
  /** As the page says it: a parameter's own value is "value". */
  readonly of: readonly string[];
  readonly pass: Float64Array;
}

/** Names, and what is found by them: worked out once for all tables that share them. */
export interface Named {
  readonly names: Names;
  /** The table that they came with, for what else does not change: shapes, modules. */
  readonly table: Table;
  /** Rows of each node. */
  readonly places: ReadonlyMap<string, readonly number[]>;
  /** Samples of the batch, as far as any tensor knows. */
  readonly batch: number;
}

/** Of a table that has them. */
export function namesIn(table: Table): Named {
  const node = texts(table, "node");
  const of = texts(table, "of").map(plainOf);
  const names = { node, role: texts(table, "role"), of, pass: numbers(table, "pass") };
  return { names, table, places: placesOf(node), batch: batchIn(table) };
}

const NO_SHAPE = new Int32Array(0);

function batchIn(table: Table): number {
  if (!has(table, "shape") || !has(table, "batch_dim")) return 0;
  const [dimensions, shapes] = [numbers(table, "batch_dim"), lists(table, "shape", NO_SHAPE)];
  let most = 0;
  for (let row = 0; row < dimensions.length; row++) {
    if (dimensions[row] >= 0) most = Math.max(most, Number(shapes(row)[dimensions[row]] ?? 0));
  }
  return most;
}

export function placesOf(names: readonly string[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  names.forEach((name, row) => {
    const list = places.get(name);
    if (list) list.push(row);
    else places.set(name, [row]);
  });
  return places;
}

const MOST_KNOWN = 64; // a network may be different at every step
const known = new Map<string, Named>(); // by stamp, the last one used at the end
const last = new Map<string, string>(); // what was asked for -> stamp of its last answer

/** What to say about the names that are known when asking for more of the same: a trial's steps, or its samples. */
export const stampFor = (what: string): string | null => last.get(what) ?? null;

/** The names of an answer: its own, or those that it left out because they are known. */
export function namedIn(table: Table, what: string): Named {
  const stamp = metadata<string>(table, "names", "");
  const found = known.get(stamp) ?? (has(table, "node") ? namesIn(table) : null);
  if (!found) throw new Error("The server left out names that this page does not know.");
  if (!stamp) return found;
  known.delete(stamp);
  known.set(stamp, found);
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value as string);
  last.set(what, stamp);
  return found;
}
