/** From the table of the server to rows and columns of layers × steps. */
import { useMemo, useRef } from "react";
import type { Cells } from "../../model/layers/derive";
import { growLayers, patternOf, type LayerRow } from "../../model/layers/tree";
import type { LayersTable, Trial, Union } from "../../state/data";

export interface RowFacts {
  readonly kind: string;
  readonly shape: readonly number[] | null;
  readonly source: string;
}

export interface ShownStep {
  readonly number: number;
  readonly type: string;
  readonly ordinal: number;
}

export function stepsOf(trial: Trial | null, table: LayersTable | null, type: string | null): readonly ShownStep[] {
  if (!trial || !table) return [];
  const { ordinal, number, type: types } = trial.steps;
  const there = new Set(table.ordinals);
  return ordinal
    .map((each, i) => ({ ordinal: each, number: number[i], type: trial.types[types[i]] ?? "" }))
    .filter((step) => there.has(step.ordinal) && (type === null || step.type === type))
    .sort((a, b) => a.number - b.number || a.ordinal - b.ordinal);
}

/** The columns in the order of the steps that are shown; mostly that of the table itself. */
export function cellsOf(table: LayersTable, steps: readonly ShownStep[]): Cells {
  const { rows, ordinals } = table;
  const isSame = steps.length === ordinals.length && steps.every(({ ordinal }, i) => ordinal === ordinals[i]);
  if (isSame) return { rows, columns: ordinals.length, values: table.values, states: table.states };
  const places = new Map(ordinals.map((ordinal, i) => [ordinal, i]));
  const columns = steps.length;
  const values = new Float32Array(rows * columns);
  const states = new Uint8Array(rows * columns);
  steps.forEach(({ ordinal }, column) => {
    const place = places.get(ordinal) as number;
    for (let row = 0; row < rows; row++) {
      values[row * columns + column] = table.values[row * ordinals.length + place];
      states[row * columns + column] = table.states[row * ordinals.length + place];
    }
  });
  return { rows, columns, values, states };
}

/** What the network has and the table does not, as a parameter without a gradient, is a row of its own: hatched. */
export function withMissing(table: LayersTable, union: Union | null, rowsShown: "outputs" | "parameters"): LayersTable {
  const isStored = (kind: string): boolean => kind === "parameter" || kind === "buffer";
  const there = new Set(table.node.map((node, i) => recordKey(node, table.role[i], table.pass[i])));
  const missing = union?.graph.nodes.filter(({ node, role, pass, kind }) =>
    isStored(kind) === (rowsShown === "parameters") && !there.has(recordKey(node, role, pass))) ?? [];
  if (missing.length === 0) return table;
  const rows = table.rows + missing.length;
  const size = rows * table.ordinals.length;
  const [values, states] = [new Float32Array(size), new Uint8Array(size)];
  values.set(table.values);
  states.set(table.states);
  return {
    ...table, rows, values, states,
    node: [...table.node, ...missing.map(({ node }) => node)],
    role: [...table.role, ...missing.map(({ role }) => role)],
    of: [...table.of, ...missing.map(() => "")],
    kind: [...table.kind, ...missing.map(({ kind }) => kind)],
    pass: Float64Array.from([...table.pass, ...missing.map(({ pass }) => pass)]),
  };
}

export type Names = Pick<LayersTable, "node" | "role" | "pass" | "kind">;

/** The same object for tables with the same rows, so that nothing is built anew when another statistic is chosen. */
export function useSameNames(table: LayersTable | null): Names | null {
  const kept = useRef<Names | null>(null);
  return useMemo(() => {
    if (!table) return null;
    const before = kept.current;
    const isSame = before !== null && before.node.length === table.rows && before.node.every((node, i) =>
      node === table.node[i] && before.role[i] === table.role[i] && before.pass[i] === table.pass[i]);
    if (!isSame) kept.current = table;
    return kept.current;
  }, [table]);
}

const recordKey = (node: string, role: string, pass: number): string => `${node}\n${role}\n${pass}`;

export function orderOf(union: Union | null): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  union?.graph.nodes.forEach(({ node, role, pass }, i) => found.set(recordKey(node, role, pass), i));
  return found;
}

export function growRows(
  names: Names | null, order: ReadonlyMap<string, number>, types: ReadonlyMap<string, string>,
): readonly LayerRow[] {
  if (!names) return [];
  const records = names.node.map((node, i) => ({
    node, role: names.role[i], pass: names.pass[i],
    order: order.get(recordKey(node, names.role[i], names.pass[i])) ?? 1e9 + i,
  }));
  return growLayers(records, (address) => types.get(address) ?? "");
}

export function factsOf(names: Names | null, union: Union | null): (record: number) => RowFacts {
  const byKey = new Map(union?.graph.nodes.map((node) => [recordKey(node.node, node.role, node.pass), node]) ?? []);
  return (record) => {
    const found = names && byKey.get(recordKey(names.node[record], names.role[record], names.pass[record]));
    return { kind: names?.kind[record] ?? "", shape: found?.shape ?? null, source: found?.source ?? "" };
  };
}

/** The same layer of all blocks: the same name with another index, and the same class where that is known. */
export function groupsOf(
  names: Names | null, types: ReadonlyMap<string, string>,
): (record: number) => readonly number[] {
  const groups = new Map<string, number[]>();
  const keys = names?.node.map((node, i) =>
    [patternOf(node), types.get(node) ?? "", names.role[i], names.pass[i], names.kind[i]].join("\n")) ?? [];
  keys.forEach((key, record) => {
    if (!key.includes("#")) return;
    const found = groups.get(key);
    if (found) found.push(record);
    else groups.set(key, [record]);
  });
  const NONE: readonly number[] = [];
  return (record) => groups.get(keys[record]) ?? NONE;
}

const FEWEST_ALIKE = 3; // one, and two others

export const anyBlocks = (names: Names | null, group: (record: number) => readonly number[]): boolean =>
  names !== null && names.node.some((_, record) => group(record).length >= FEWEST_ALIKE);

export function otherNumbers(
  table: LayersTable, steps: readonly ShownStep[], other: LayersTable, trial: Trial,
): (row: number, column: number) => number {
  const rows = new Map(other.node.map((node, i) => [recordKey(node, other.role[i], other.pass[i]), i]));
  const places = new Map(other.ordinals.map((ordinal, i) => [ordinal, i]));
  const columnOf = new Map<number, number>();
  trial.steps.ordinal.forEach((ordinal, i) => {
    const place = places.get(ordinal);
    if (place !== undefined) columnOf.set(trial.steps.number[i], place);
  });
  const mine = table.node.map((node, i) => rows.get(recordKey(node, table.role[i], table.pass[i])) ?? -1);
  return (row, column) => {
    const place = columnOf.get(steps[column].number) ?? -1;
    const cell = mine[row] * other.ordinals.length + place;
    return mine[row] >= 0 && place >= 0 && other.states[cell] === 1 ? other.values[cell] : NaN;
  };
}
