/** What is known about trials, put together for relaxing choices. */
import { placesOf } from "../api/named";
import type { Tensors, Trial } from "../api/types";
import type { TensorColumns, World } from "./relax";

const NONE: readonly number[] = [];

/** A trial of which only the name is known is a place without steps. */
export function worldOf(name: string, trial: Trial | null, tensors: Tensors | null): World {
  const steps = trial?.steps;
  const ordinals = steps?.ordinal ?? [];
  const types = steps?.type.map((place) => trial?.types[place] ?? "") ?? [];
  const columns = tensors && columnsOf(tensors);
  const setOf = new Map<number, readonly number[] | null>();
  tensors?.ordinals.forEach((ordinal, i) => setOf.set(ordinal, tensors.sets[tensors.setOf[i]] ?? null));
  // Of a step that came after the list was made, nothing is known; of one without tensors everything is.
  const has = (step: number): readonly number[] | null =>
    steps?.tensors[step] === 0 ? NONE : setOf.get(ordinals[step]) ?? null;
  return { trial: name, numbers: steps?.number ?? [], types, ordinals, tensors: columns, has };
}

const known = new WeakMap<Tensors, TensorColumns>();

function columnsOf(tensors: Tensors): TensorColumns {
  let found = known.get(tensors);
  if (!found) {
    const of = tensors.of.map((word) => (word === "parameter" ? "value" : word));
    found = { ...tensors, of, pass: tensors.passes };
    known.set(tensors, found);
  }
  return found;
}

/** What is worked out once for all tensors of a trial: choices are offered after every click. */
interface Index {
  readonly ofNode: ReadonlyMap<string, readonly number[]>;
  readonly ofs: readonly string[];
  readonly manyRoles: boolean;
  readonly manyPasses: boolean;
}

const indexes = new WeakMap<TensorColumns, Index>();

export function indexOf(columns: TensorColumns): Index {
  let found = indexes.get(columns);
  if (!found) {
    const manyRoles = columns.role.some((word) => word !== "");
    const manyPasses = columns.pass.some((number) => number > 1);
    found = { ofNode: placesOf(columns.node), ofs: [...new Set(columns.of)], manyRoles, manyPasses };
    indexes.set(columns, found);
  }
  return found;
}

/** Kinds of values a trial has, in the order in which they are offered: value, gradients, updates, others. */
export function ofsOf(columns: TensorColumns | null, losses: readonly string[]): string[] {
  if (!columns) return ["value"];
  const there = indexOf(columns).ofs;
  if (there.length === 0) return ["value"];
  const order = ["value", ...losses.map((loss) => `gradient:${loss}`), "update"];
  return [...order.filter((of) => there.includes(of)), ...there.filter((of) => !order.includes(of))];
}

/** Different entries of a column among some tensors, in the order in which they were recorded. */
export function entriesOf<F extends "role" | "pass">(
  columns: TensorColumns | null, field: F, tensors: readonly number[],
): TensorColumns[F][number][] {
  return columns ? [...new Set(tensors.map((tensor): TensorColumns[F][number] => columns[field][tensor]))] : [];
}

export const batchOf = (columns: TensorColumns | null, tensors: readonly number[]): number =>
  tensors.reduce((most, tensor) => Math.max(most, columns?.batch[tensor] ?? 0), 0);
