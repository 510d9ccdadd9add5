/** What is known about trials, put together for relaxing choices. */
import type { Tensors, Trial } from "../api/types";
import type { TensorColumns, World } from "./relax";

/** A trial of which only the name is known is a place without steps. */
export function worldOf(name: string, trial: Trial | null, tensors: Tensors | null): World {
  const steps = trial?.steps;
  const ordinals = steps?.ordinal ?? [];
  const types = steps?.type.map((place) => trial?.types[place] ?? "") ?? [];
  const columns = tensors && columnsOf(tensors);
  const setOf = new Map<number, readonly number[] | null>();
  tensors?.ordinals.forEach((ordinal, i) => setOf.set(ordinal, tensors.sets[tensors.setOf[i]] ?? null));
  // Of a step that came after the list was made, the newest of its type tells most.
  const has = (step: number): readonly number[] | null => setOf.get(ordinals[step]) ?? null;
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

/** Kinds of values a trial has, in the order in which they are offered: value, gradients, updates, others. */
export function ofsOf(columns: TensorColumns | null, losses: readonly string[]): string[] {
  if (!columns) return ["value"];
  const there = new Set(columns.of);
  const order = ["value", ...losses.map((loss) => `gradient:${loss}`), "update"];
  return [...order.filter((of) => there.has(of)), ...[...there].filter((of) => !order.includes(of))];
}

/** Different entries of a column among the tensors of a node, in the order in which they were recorded. */
export function entriesOf<F extends "role" | "pass">(
  columns: TensorColumns | null, field: F, fits: (tensor: number) => boolean,
): TensorColumns[F][number][] {
  if (!columns) return [];
  const found = new Set<TensorColumns[F][number]>();
  columns.node.forEach((_, tensor) => {
    if (fits(tensor)) found.add(columns[field][tensor]);
  });
  return [...found];
}

export function batchOf(columns: TensorColumns | null, fits: (tensor: number) => boolean): number {
  if (!columns) return 0;
  return columns.batch.reduce((most, batch, tensor) => (batch > most && fits(tensor) ? batch : most), 0);
}
