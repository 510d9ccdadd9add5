/** One statistic of all tensors at all steps, as it is and against something: for layers × steps and for the graph. */
import { useMemo } from "react";
import { Derived, type Cells, type Reference } from "../../model/layers/derive";
import {
  useCatalog, useGraph, useLayers, useModules, useTrial, type LayerRows, type LayersTable, type Modules, type Trial,
} from "../../state/data";
import { usePart } from "../../state/page";
import {
  anyBlocks, cellsOf, groupsOf, otherNumbers, stepsOf, useSameNames, type Names, type ShownStep,
} from "./rows_of";

export interface Asked {
  readonly trial: string | null;
  readonly described: Trial | null;
  readonly table: LayersTable | null;
  readonly of: string;
  readonly statistic: string;
  readonly isShare: boolean;
  /** Which half of the table; null: all of it. */
  readonly rows: LayerRows | null;
  readonly type: string | null;
}

export interface References {
  readonly steps: readonly ShownStep[];
  readonly cells: Cells;
  readonly names: Names | null;
  readonly types: ReadonlyMap<string, string>;
  readonly group: (record: number) => readonly number[];
  readonly hasBlocks: boolean;
  /** The trial that this one may be held against, and all others that it might be. */
  readonly other: string | null;
  readonly others: readonly string[];
  /** What the colours are against, of what has been chosen and can be. */
  readonly reference: Reference;
  readonly derived: (reference: Reference) => Derived;
}

const NO_CELLS: Cells = { rows: 0, columns: 0, values: new Float32Array(0), states: new Uint8Array(0) };

export function useReferences({ trial, described, table, of, statistic, isShare, rows, type }: Asked): References {
  const mode = usePart((page) => page.heat.mode);
  const modules = useModules(trial).value;
  const { other, others } = useOther(trial);
  const steps = useMemo(() => stepsOf(described, table, type), [described, table, type]);
  const cells = useMemo(() => (table ? cellsOf(table, steps) : NO_CELLS), [table, steps]);
  const types = useMemo(() => typesOf(modules), [modules]);
  const names = useSameNames(table);
  const group = useMemo(() => groupsOf(names, types), [names, types]);
  const hasBlocks = useMemo(() => anyBlocks(names, group), [names, group]);
  const reference = referenceFor(mode, hasBlocks, other);
  const asked = reference === "trial" ? other : null;
  const otherTable = useLayers(null, asked, of, statistic, rows).value;
  const otherTrial = useTrial(asked).value;
  const otherCells = useMemo(
    () => (otherTrial && otherTable && table ? otherNumbers(table, steps, otherTable, otherTrial) : null),
    [table, steps, otherTable, otherTrial],
  );
  const derived = useMemo(() => {
    const made = new Map<Reference, Derived>();
    return (wanted: Reference): Derived => {
      const found = made.get(wanted) ?? new Derived(cells, wanted, isShare, group, otherCells);
      made.set(wanted, found);
      return found;
    };
  }, [cells, isShare, group, otherCells]);
  return { steps, cells, names, types, group, hasBlocks, other, others, reference, derived };
}

function referenceFor(mode: string, hasBlocks: boolean, other: string | null): Reference {
  if (mode === "blocks") return hasBlocks ? "blocks" : "past";
  if (mode === "trial" || mode === "difference") return other === null ? "absolute" : "trial";
  return mode === "past" ? "past" : "absolute";
}

/** Whether the network repeats a block, before any number has come. */
export function useHasBlocks(trial: string | null): boolean {
  const union = useGraph(trial).value;
  const modules = useModules(trial).value;
  return useMemo(() => {
    const nodes = union?.graph.nodes ?? [];
    const names: Names = {
      node: nodes.map(({ node }) => node), role: nodes.map(({ role }) => role),
      kind: nodes.map(({ kind }) => kind), pass: Float64Array.from(nodes, ({ pass }) => pass),
    };
    return anyBlocks(names, groupsOf(names, typesOf(modules)));
  }, [union, modules]);
}

const typesOf = (modules: Modules | null): ReadonlyMap<string, string> =>
  new Map(modules?.modules.map(({ address, type }) => [address, type]) ?? []);

/** Trials that this one can be held against; those that sound like a base line come first. */
export function useOther(trial: string | null): { readonly other: string | null; readonly others: readonly string[] } {
  const catalog = useCatalog().value;
  const chosen = usePart((page) => page.trials);
  const wanted = usePart((page) => page.layers.other);
  const others = useMemo(() => {
    const readable = catalog?.trials.filter((each) => each.readable && each.name !== trial) ?? [];
    const isBase = (name: string): number => Number(/base|control|reference/i.test(name));
    const sorted = [...readable].sort((a, b) => isBase(b.name) - isBase(a.name) || b.created - a.created);
    const names = sorted.map(({ name }) => name);
    return [...chosen.filter((name) => names.includes(name)), ...names.filter((name) => !chosen.includes(name))];
  }, [catalog, chosen, trial]);
  return { other: others.includes(wanted) ? wanted : (others[0] ?? null), others };
}
