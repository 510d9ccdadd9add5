/** What layers × steps shows, from the state and from what the server has. */
import { useMemo } from "react";
import type { LayerRow } from "../../model/layers/tree";
import type { Cells, Derived, Reference } from "../../model/layers/derive";
import { layerScale, type LayerScale } from "../../model/layers/scale";
import { useGraph, useLayers, useTrial, type LayersTable, type Trial, type Union } from "../../state/data";
import { useMainTrial, useOfs, usePart, useShownPart } from "../../state/page";
import { factsOf, growRows, orderOf, withMissing, type RowFacts, type ShownStep } from "./rows_of";
import { choiceFor, statisticsOf, type StatisticChoice } from "./statistics";
import { useReferences } from "./use_references";

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

  const isShare = statistic?.isShare ?? false;
  const { steps, cells, names, types, group, hasBlocks, other, others, reference, derived } = useReferences({
    trial, described, table, of, statistic: statistic?.value ?? "", isShare, rows: rowsShown, type: wantedType,
  });
  const order = useMemo(() => orderOf(union), [union]);
  const rows = useMemo(() => growRows(names, order, types), [names, order, types]);
  const facts = useMemo(() => factsOf(names, union), [names, union]);
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
    problem: answer.problem, pending: answer.pending, steps, cells, rows, facts, group, derived, scale,
  };
}

/** A parameter is looked at among parameters. */
function kindShown(union: Union | null, node: string | null): "outputs" | "parameters" {
  const found = union?.graph.nodes.find((each) => each.node === node);
  return found && (found.kind === "parameter" || found.kind === "buffer") ? "parameters" : "outputs";
}
