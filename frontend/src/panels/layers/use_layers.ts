/** What layers × steps shows, from the state and from what the server has. */
import { useMemo } from "react";
import { growLayers, patternOf, type LayerRow } from "../../model/layers/tree";
import { Derived, type Cells, type Reference } from "../../model/layers/derive";
import { layerScale, type LayerScale } from "../../model/layers/scale";
import {
  useCatalog, useGraph, useLayers, useModules, useTrial, type LayersTable, type Trial, type Union,
} from "../../state/data";
import { useMainTrial, usePart, useShownPart, useChoices } from "../../state/page";
import { choiceFor, statisticsOf, type StatisticChoice } from "./statistics";

export interface RowFacts {
  readonly kind: string;
  readonly shape: readonly number[] | null;
  readonly source: string;
}

export interface LayersData {
  readonly trial: string | null;
  readonly described: Trial | null;
  readonly other: string | null;
  readonly others: readonly string[];
  readonly of: string;
  readonly ofs: readonly string[];
  readonly statistics: readonly StatisticChoice[];
  readonly statistic: StatisticChoice | null;
  readonly reference: Reference;
  readonly rowsShown: "outputs" | "parameters";
  readonly hasBlocks: boolean;
  /** Null while it is on its way, or where nothing was recorded. */
  readonly table: LayersTable | null;
  readonly problem: string | null;
  readonly pending: boolean;
  readonly steps: readonly ShownStep[];
  readonly cells: Cells;
  readonly rows: readonly LayerRow[];
  readonly facts: (record: number) => RowFacts;
  readonly group: (record: number) => readonly number[];
  readonly derived: (reference: Reference) => Derived;
  readonly scale: LayerScale;
}

export interface ShownStep {
  readonly number: number;
  readonly type: string;
  readonly ordinal: number;
}

const NO_CELLS: Cells = { rows: 0, columns: 0, values: new Float32Array(0), states: new Uint8Array(0) };
const LIKELY = ["abs_mean", "std", "zeros", "abs_max", "norm"];

export function useLayersData(): LayersData {
  const trial = useMainTrial();
  const described = useTrial(trial).value;
  const heat = usePart((page) => page.heat);
  const layers = usePart((page) => page.layers);
  const wantedOf = usePart((page) => page.look.of);
  const wantedType = usePart((page) => page.look.type);
  const shownKey = useShownPart("a", (shown) => shown.node);
  const role = useShownPart("a", (shown) => shown.role);
  const pass = useShownPart("a", (shown) => shown.pass);
  const shownOf = useShownPart("a", (shown) => shown.of);
  const { ofs } = useChoices("a");
  const union = useGraph(trial).value;
  const modules = useModules(trial).value;
  const statistics = useMemo(() => statisticsOf(described), [described]);

  const of = wantedOf !== null && ofs.includes(wantedOf) ? wantedOf : "value";
  const statistic = choiceFor(statistics, heat.statistic, of);
  const rowsShown = of === "update" ? "parameters" : layers.rows !== "auto" ? layers.rows : kindShown(union, shownKey);
  const key = useMemo(
    () => (trial === null || shownKey === null || shownOf !== of ? null : { trial, node: shownKey, of, role, pass }),
    [trial, shownKey, of, shownOf, role, pass],
  );
  const isReady = described !== null && union !== null && described.tensors > 0;
  const answer = useLayers(key, isReady ? trial : null, of, statistic?.value ?? "", rowsShown, LIKELY);
  const table = useMemo(
    () => answer.value && withMissing(answer.value, union, rowsShown), [answer.value, union, rowsShown],
  );

  const others = useOthers(trial);
  const other = others.includes(layers.other) ? layers.other : (others[0] ?? null);
  const isVsTrial = heat.mode === "trial" && other !== null;
  const otherTable = useLayers(null, isVsTrial ? other : null, of, statistic?.value ?? "", rowsShown).value;
  const otherTrial = useTrial(isVsTrial ? other : null).value;

  const steps = useMemo(() => stepsOf(described, table, wantedType), [described, table, wantedType]);
  const cells = useMemo(() => (table ? cellsOf(table, steps) : NO_CELLS), [table, steps]);
  const order = useMemo(() => orderOf(union), [union]);
  const types = useMemo(
    () => new Map(modules?.modules.map(({ address, type }) => [address, type]) ?? []), [modules],
  );
  const names = useSameNames(table);
  const rows = useMemo(() => growRows(names, order, types), [names, order, types]);
  const facts = useMemo(() => factsOf(names, union), [names, union]);
  const group = useMemo(() => groupsOf(names, types), [names, types]);
  const hasBlocks = useMemo(
    () => Boolean(names && names.node.some((_, record) => group(record).length > 2)), [names, group],
  );
  const otherCells = useMemo(
    () => otherTrial && otherTable && table ? otherNumbers(table, steps, otherTable, otherTrial) : null,
    [table, steps, otherTable, otherTrial],
  );
  const isShare = statistic?.isShare ?? false;
  const known = useMemo(() => {
    const made = new Map<Reference, Derived>();
    return (reference: Reference): Derived => {
      const made_ = made.get(reference) ?? new Derived(cells, reference, isShare, group, otherCells);
      made.set(reference, made_);
      return made_;
    };
  }, [cells, isShare, group, otherCells]);
  const reference = referenceFor(heat.mode, hasBlocks, other);
  const scale = useMemo(() => {
    const counted = Array.from({ length: cells.rows }, (_, record) => record).filter((record) => {
      const { kind, shape } = facts(record);
      const isSingle = shape !== null && shape.reduce((all, size) => all * size, 1) <= 1;
      return kind !== "target" && kind !== "loss" && !isSingle;
    });
    return layerScale(cells, counted.length ? counted : [0], reference, statistic?.scale ?? "log", isShare);
  }, [cells, facts, reference, statistic, isShare]);

  return {
    trial, described, other, others, of, ofs, statistics, statistic, reference, rowsShown, hasBlocks, table,
    problem: answer.problem, pending: answer.pending, steps, cells, rows, facts, group, derived: known, scale,
  };
}

function referenceFor(mode: string, hasBlocks: boolean, other: string | null): Reference {
  if (mode === "blocks") return hasBlocks ? "blocks" : "past";
  if (mode === "trial" || mode === "difference") return other === null ? "absolute" : "trial";
  return mode === "past" ? "past" : "absolute";
}

function useOthers(trial: string | null): readonly string[] {
  const catalog = useCatalog().value;
  const chosen = usePart((page) => page.trials);
  return useMemo(() => {
    const readable = catalog?.trials.filter((each) => each.readable && each.name !== trial) ?? [];
    const isBase = (name: string): number => Number(/base|control|reference/i.test(name));
    const sorted = [...readable].sort((a, b) => isBase(b.name) - isBase(a.name) || b.created - a.created);
    const names = sorted.map(({ name }) => name);
    return [...chosen.filter((name) => names.includes(name)), ...names.filter((name) => !chosen.includes(name))];
  }, [catalog, chosen, trial]);
}

/** A parameter is looked at among parameters. */
function kindShown(union: Union | null, node: string | null): "outputs" | "parameters" {
  const found = union?.graph.nodes.find((each) => each.node === node);
  return found && (found.kind === "parameter" || found.kind === "buffer") ? "parameters" : "outputs";
}

function stepsOf(trial: Trial | null, table: LayersTable | null, type: string | null): readonly ShownStep[] {
  if (!trial || !table) return [];
  const { ordinal, number, type: types } = trial.steps;
  const there = new Set(table.ordinals);
  return ordinal
    .map((each, i) => ({ ordinal: each, number: number[i], type: trial.types[types[i]] ?? "" }))
    .filter((step) => there.has(step.ordinal) && (type === null || step.type === type))
    .sort((a, b) => a.number - b.number || a.ordinal - b.ordinal);
}

/** The columns in the order of the steps that are shown; mostly that of the table itself. */
function cellsOf(table: LayersTable, steps: readonly ShownStep[]): Cells {
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
function withMissing(table: LayersTable, union: Union | null, rowsShown: "outputs" | "parameters"): LayersTable {
  const isStored = (kind: string): boolean => kind === "parameter" || kind === "buffer";
  const there = new Set(table.node.map((node, i) => recordKey(node, table.role[i], table.pass[i])));
  const missing = union?.graph.nodes.filter(({ node, role, pass, kind }) =>
    isStored(kind) === (rowsShown === "parameters") && !there.has(recordKey(node, role, pass))) ?? [];
  if (missing.length === 0) return table;
  const rows = table.rows + missing.length;
  const [values, states] = [new Float32Array(rows * table.ordinals.length), new Uint8Array(rows * table.ordinals.length)];
  values.set(table.values);
  states.set(table.states);
  return {
    ...table, rows, values, states,
    node: [...table.node, ...missing.map(({ node }) => node)],
    role: [...table.role, ...missing.map(({ role }) => role)],
    kind: [...table.kind, ...missing.map(({ kind }) => kind)],
    pass: Float64Array.from([...table.pass, ...missing.map(({ pass }) => pass)]),
  };
}

type Names = Pick<LayersTable, "node" | "role" | "pass" | "kind">;
let keptNames: Names | null = null;

/** The same object for tables with the same rows, so that nothing is built anew when another statistic is chosen. */
function useSameNames(table: LayersTable | null): Names | null {
  return useMemo(() => {
    if (!table) return null;
    const isSame = keptNames !== null && keptNames.node.length === table.rows && keptNames.node.every((node, i) =>
      node === table.node[i] && keptNames?.role[i] === table.role[i] && keptNames.pass[i] === table.pass[i]);
    if (!isSame) keptNames = table;
    return keptNames;
  }, [table]);
}

const recordKey = (node: string, role: string, pass: number): string => `${node}\n${role}\n${pass}`;

function orderOf(union: Union | null): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  union?.graph.nodes.forEach(({ node, role, pass }, i) => found.set(recordKey(node, role, pass), i));
  return found;
}

function growRows(
  names: Names | null, order: ReadonlyMap<string, number>, types: ReadonlyMap<string, string>,
): readonly LayerRow[] {
  if (!names) return [];
  const records = names.node.map((node, i) => ({
    node, role: names.role[i], pass: names.pass[i],
    order: order.get(recordKey(node, names.role[i], names.pass[i])) ?? 1e9 + i,
  }));
  return growLayers(records, (address) => types.get(address) ?? "");
}

function factsOf(names: Names | null, union: Union | null): (record: number) => RowFacts {
  const byKey = new Map(union?.graph.nodes.map((node) => [recordKey(node.node, node.role, node.pass), node]) ?? []);
  return (record) => {
    const found = names && byKey.get(recordKey(names.node[record], names.role[record], names.pass[record]));
    return { kind: names?.kind[record] ?? "", shape: found?.shape ?? null, source: found?.source ?? "" };
  };
}

/** The same layer of all blocks: the same name with another index, and the same class where that is known. */
function groupsOf(names: Names | null, types: ReadonlyMap<string, string>): (record: number) => readonly number[] {
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

function otherNumbers(
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
