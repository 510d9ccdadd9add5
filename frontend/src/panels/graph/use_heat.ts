/** The colours of the graph: one statistic of everything that is looked at, as it is, against its past, or A − B. */
import { useMemo, useRef } from "react";
import { ABSENT, emptyHeat, VALUE, type Heat, type HeatScale } from "../../model/heat";
import {
  heatDifference, heatOfStep, rowsOfGraph, telling, type StepNumbers, type TensorRows,
} from "../../model/heat_tables";
import { scaleFor, scaleWith } from "../../model/heat_scale";
import type { History } from "../../model/history";
import { percent } from "../../model/numbers";
import type { Reference } from "../../model/layers/derive";
import { referenceWords } from "../../model/layers/words";
import { pointsText, ratioText } from "../../model/ratio";
import type { GraphSource } from "../../model/source";
import { heatLabel, statisticNamed } from "../../model/statistics";
import { useStatistics, useStep, useStepSample, type Statistic, type StepTable } from "../../state/data";
import { isWholeType } from "../tensor/histogram_words";
import { useHistory } from "./use_history";
import { isBare, isComparing, usePart, useShown, type Pane, type Shown } from "../../state/page";

export interface ShownHeat {
  readonly heat: Heat | null;
  readonly scale: HeatScale | null;
  /** What the colours show. */
  readonly words: string;
  /** Why nothing is coloured, as a sentence. */
  readonly missing: string | null;
  /** The same at all steps; null for a sample and for A − B. */
  readonly history: History | null;
  /** 1 for tensors that have no colour. */
  readonly apart: Uint8Array | null;
}

const NO_HEAT: ShownHeat = { heat: null, scale: null, words: "", missing: null, history: null, apart: null };
const INFINITIES = ["infs", "neg_infs"] as const;

export function useGraphHeat(source: GraphSource): ShownHeat {
  const { statistic: name, mode, range } = usePart((page) => page.heat);
  const comparing = usePart(isComparing);
  const shown = useShown("a");
  const known = useStatistics(shown.trial);
  const statistic = useMemo(() => statisticNamed(name, known), [name, known]);
  const a = usePaneHeat("a", source, name === "" ? null : statistic);
  const isDifference = name !== "" && mode === "difference" && comparing;
  const b = usePaneHeat("b", source, isDifference ? statistic : null);
  const hasHistory = name !== "" && !isDifference && shown.sample === null;
  const apart = useApart(source, shown);
  const found = useHistory(source, shown, hasHistory ? statistic : null, apart);
  const { history, scale: robust, reference, other, pending } = found;
  const isRatio = hasHistory && reference !== "absolute";
  const shownHeat = useMemo((): ShownHeat | null => {
    if (name === "") return { ...NO_HEAT, apart };
    if (!a || (isDifference && !b) || (hasHistory && pending)) return null;
    const words = `${heatLabel(statistic)} of ${(shown.of ?? "value").replace(":", " · ")}`;
    if (isRatio && robust) {
      const heat = heatOfHistory(history, source.nodes.length, a, robust.what === "points" ? pointsText : ratioText);
      const missing = anyValue(heat) ? null : noReference(reference, other);
      const against = `${words}, ${referenceWords(reference, other ?? "")}`;
      return { heat, scale: scaleWith(robust, range), words: against, missing, history, apart };
    }
    const heat = isDifference && b ? heatDifference(a, b) : a;
    const fitted = scaleFor([telling(heat, source, shown.of, apart)], isDifference ? "diverging" : statistic.scale);
    // A scale of nothing would say that there is something.
    const scale = anyValue(heat) ? scaleWith(isDifference ? fitted : robust ?? fitted, range) : null;
    const whose = shown.sample === null ? "" : `, sample ${shown.sample}`;
    const none = `Nothing on this step has ${ofWords(shown.of)}${shown.sample === null ? "" : " of this sample"}.`;
    const missing = anyValue(heat) ? null : none;
    return { heat, scale, words: words + (isDifference ? ", A − B" : whose), missing, history, apart };
  }, [
    source, name, isRatio, reference, other, isDifference, hasHistory, pending, history, robust, a, b, statistic, shown,
    range, apart,
  ]);
  // Old colours stay until the new numbers are there.
  const last = useRef<{ source: GraphSource; shown: ShownHeat }>({ source, shown: NO_HEAT });
  if (shownHeat) last.current = { source, shown: shownHeat };
  return last.current.source === source ? last.current.shown : NO_HEAT;
}

/** How every tensor stands to its past, to other blocks or to another trial, at the shown step. */
function heatOfHistory(
  history: History | null, count: number, now: Heat, words: (value: number) => string,
): Heat {
  const heat = emptyHeat(count);
  if (!history || history.column < 0) return { ...heat, words };
  for (let record = 0; record < count; record++) {
    const line = history.line(record);
    const state = line?.states[history.column] ?? ABSENT;
    heat.states[record] = now.states[record] !== VALUE ? now.states[record] : state === VALUE ? VALUE : ABSENT;
    heat.values[record] = state === VALUE && line ? line.values[history.column] : NaN;
  }
  return { ...heat, words };
}

/** Labels, ids, counters, losses and other single numbers have no colour and do not touch the scale. */
function useApart(source: GraphSource, { trial, step, type }: Shown): Uint8Array {
  const table = useStep(trial, step, type).value;
  const named = table?.node ?? null;
  const known = useRef<{ readonly named: unknown; readonly apart: Uint8Array } | null>(null);
  return useMemo(() => {
    const apart = Uint8Array.from(source.nodes, ({ kind, shape }) =>
      kind === "loss" || kind === "target" || (shape !== undefined && shape !== null && shape.length === 0) ? 1 : 0);
    if (table) {
      rowsOfGraph(source, table, "value").forEach((row, i) => {
        if (row >= 0 && isWholeType(table.dtype(row))) apart[i] = 1;
      });
    }
    const before = known.current?.apart;
    const isSame = before?.length === apart.length && before.every((is, i) => is === apart[i]);
    if (!isSame) known.current = { named, apart };
    return (known.current as { apart: Uint8Array }).apart;
  }, [source, table, named]);
}

function noReference(reference: Reference, other: string | null): string {
  if (reference === "past") return "There are no three earlier steps of this type to compare with.";
  return reference === "blocks" ? "No tensor of this step has two others like it in other blocks."
    : `${other} has no such step.`;
}

const anyValue = (heat: Heat): boolean => heat.states.some((state) => state !== ABSENT);

export const ofWords = (of: string | null): string =>
  of === null || of === "value" ? "a value" : of === "update" ? "an update" : `a gradient of ${of.split(":")[1]}`;

const share = (value: number): string => percent(value);

/** What one pane looks at, in all tensors. Null: not there yet. */
function usePaneHeat(pane: Pane, source: GraphSource, statistic: Statistic | null): Heat | null {
  const { trial, step, type, of, sample } = useShown(pane);
  const whole = useStep(statistic && trial, step, type);
  const part = useStepSample(statistic && trial, step, type, sample);
  const table = whole.pending ? null : whole.value;
  const one = sample === null || part.pending ? null : part.value;
  const isBareStep = trial !== null && step !== null && isBare(trial, step, type);
  const isLost = isBareStep || Boolean(whole.problem ?? (sample === null ? null : part.problem));
  return useMemo(() => {
    if (statistic && isLost) return emptyHeat(source.nodes.length);
    if (!statistic || !table || of === null) return null;
    if (sample === null) return coloured(source, table, of, stepNumbers(table, statistic), statistic);
    return one && coloured(source, one, of, sampleNumbers(one, table, statistic), statistic);
  }, [source, statistic, isLost, table, one, of, sample]);
}

function coloured(
  source: GraphSource,
  table: TensorRows,
  of: string,
  numbers: StepNumbers,
  statistic: Statistic,
): Heat {
  const heat = heatOfStep(rowsOfGraph(source, table, of), numbers);
  return statistic.isCount ? { ...heat, words: share } : heat;
}

const added = (columns: readonly Float64Array[]): Float64Array =>
  columns[0].map((_, row) => columns.reduce((sum, column) => sum + (column[row] || 0), 0));

function stepNumbers(table: StepTable, { name, isCount }: Statistic): StepNumbers {
  const values = table.statistic(name);
  if (isCount) {
    const count = table.statistic("count");
    return { ...NO_ODD, values: values.map((value, row) => value / count[row]) };
  }
  return { values, nans: table.statistic("nans"), infs: added(INFINITIES.map((word) => table.statistic(word))) };
}

const NO_ODD = { nans: [] as number[], infs: [] as number[] };

type SampleRows = TensorRows & { readonly statistic: (name: string) => Float64Array };

/** Counts of a sample are shares of its part of the tensor. */
function sampleNumbers(one: SampleRows, whole: StepTable, { name, isCount }: Statistic): StepNumbers {
  const values = one.statistic(name);
  if (!isCount) return { values, nans: one.statistic("nans"), infs: one.statistic("infs") };
  const elements = (row: number): number => {
    const at = whole.find(one.node[row], one.of[row], one.role[row], one.pass[row]);
    return at < 0 ? NaN : whole.number(at, "count") / (whole.shape(at)[whole.batchDim(at)] || 1);
  };
  return { ...NO_ODD, values: values.map((value, row) => value / elements(row)) };
}
