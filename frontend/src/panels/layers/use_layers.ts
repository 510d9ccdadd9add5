/** What layers × steps shows, from the state and from what the server has. */
import { useMemo } from "react";
import type { LayerRow } from "../../model/layers/tree";
import { Derived, type Cells, type Reference } from "../../model/layers/derive";
import { layerScale, type LayerScale } from "../../model/layers/scale";
import {
  useCatalog, useGraph, useLayers, useModules, useTrial, type LayersTable, type Trial, type Union,
} from "../../state/data";
import { useMainTrial, useOfs, usePart, useShownPart } from "../../state/page";
import {
  cellsOf, factsOf, groupsOf, growRows, orderOf, otherNumbers, stepsOf, useSameNames, withMissing, type RowFacts,
  type ShownStep,
} from "./rows_of";
import { choiceFor, statisticsOf, type StatisticChoice } from "./statistics";

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
  const ofs = useOfs(trial);
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
  const canBe = (next: string): boolean => !statistic?.of || statistic.of.includes(next.split(":")[0]);
  const answer = useLayers(key, isReady ? trial : null, of, statistic?.value ?? "", rowsShown, LIKELY, canBe);
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
