/** The colours of the graph: one statistic of everything that is looked at, as it is, against its past, or A − B. */
import { useMemo, useRef } from "react";
import { ABSENT, emptyHeat, type Heat, type HeatScale } from "../../model/heat";
import {
  heatAgainstPast, heatDifference, heatOfMatrix, heatOfStep, pastPlaces, pastScale, rowsOfGraph,
  telling, type StepNumbers, type TensorRows,
} from "../../model/heat_tables";
import { scaleFor } from "../../model/heat_scale";
import { percent } from "../../model/numbers";
import type { GraphSource } from "../../model/source";
import { heatLabel, statisticNamed } from "../../model/statistics";
import {
  useHeat, useStatistics, useStep, useStepSample, useTrial, type Statistic, type StepTable, type Trial,
} from "../../state/data";
import { isBare, isComparing, usePart, useShown, type Pane, type Shown } from "../../state/page";

export interface ShownHeat {
  readonly heat: Heat | null;
  readonly scale: HeatScale | null;
  /** What the colours show. */
  readonly words: string;
  /** Why nothing is coloured, as a sentence. */
  readonly missing: string | null;
}

const NO_HEAT: ShownHeat = { heat: null, scale: null, words: "", missing: null };
const INFINITIES = ["infs", "neg_infs"] as const;

export function useGraphHeat(source: GraphSource): ShownHeat {
  const { statistic: name, mode } = usePart((page) => page.heat);
  const comparing = usePart(isComparing);
  const shown = useShown("a");
  const known = useStatistics(shown.trial);
  const statistic = useMemo(() => statisticNamed(name, known), [name, known]);
  const a = usePaneHeat("a", source, name === "" ? null : statistic);
  const isDifference = name !== "" && mode === "difference" && comparing;
  const b = usePaneHeat("b", source, isDifference ? statistic : null);
  const isPast = name !== "" && mode === "past" && shown.sample === null;
  const past = usePast(source, shown, isPast ? statistic : null, a);
  const shownHeat = useMemo((): ShownHeat | null => {
    if (name === "") return NO_HEAT;
    const words = `${heatLabel(statistic)} of ${(shown.of ?? "value").replace(":", " · ")}`;
    if (isPast) {
      const missing = past && anyValue(past) ? null : NO_PAST;
      return past && { heat: past, scale: pastScale(past), words: `${words}, against its past`, missing };
    }
    if (!a || (isDifference && !b)) return null;
    const heat = isDifference && b ? heatDifference(a, b) : a;
    const fitted = scaleFor([telling(heat, source, shown.of)], isDifference ? "diverging" : statistic.scale);
    const scale = anyValue(heat) ? fitted : null; // a scale of nothing would say that there is something
    const whose = shown.sample === null ? "" : `, sample ${shown.sample}`;
    const none = `Nothing on this step has ${ofWords(shown.of)}${shown.sample === null ? "" : " of this sample"}.`;
    return { heat, scale, words: words + (isDifference ? ", A − B" : whose), missing: anyValue(heat) ? null : none };
  }, [source, name, isPast, isDifference, past, a, b, statistic, shown.of, shown.sample]);
  // Old colours stay until the new numbers are there.
  const last = useRef<{ source: GraphSource; shown: ShownHeat }>({ source, shown: NO_HEAT });
  if (shownHeat) last.current = { source, shown: shownHeat };
  return last.current.source === source ? last.current.shown : NO_HEAT;
}

const NO_PAST = "There is no earlier step of this type to compare with.";
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

/** Every tensor against its own earlier steps of the same type. Null: not there yet. */
function usePast(source: GraphSource, shown: Shown, statistic: Statistic | null, now: Heat | null): Heat | null {
  const loaded = useHeat(statistic && shown.trial, shown.of, statistic?.name ?? "");
  const trial = useTrial(statistic && shown.trial).value;
  const matrix = loaded.pending && !loaded.value ? null : loaded.value;
  const owner = useRef<{ matrix: unknown; of: string }>({ matrix: null, of: "" });
  const asked = `${shown.trial}\n${shown.of}\n${statistic?.name}`;
  // While another one is on its way, the one before is still handed out; it must not be taken for this one.
  if (matrix && !loaded.pending) owner.current = { matrix, of: asked };
  const isOwn = owner.current.matrix === matrix && owner.current.of === asked;
  const rows = useMemo(
    () => (matrix && isOwn ? rowsOfGraph(source, matrix, shown.of ?? "value") : null),
    [source, matrix, isOwn, shown.of],
  );
  const { ordinal, type } = shown;
  const isLost = statistic !== null && loaded.problem !== null;
  return useMemo(() => {
    if (isLost) return emptyHeat(source.nodes.length);
    if (!matrix || !rows || !trial || !statistic || ordinal === null) return null;
    const place = matrix.place(ordinal);
    if (place < 0) return null;
    const current = statistic.isCount || !now ? heatOfMatrix(rows, matrix, ordinal) : now;
    const past = pastPlaces(placesOfType(trial, type, matrix.place), place);
    return heatAgainstPast(current, rows, matrix, past, statistic.scale === "diverging");
  }, [source, isLost, matrix, rows, trial, statistic, ordinal, type, now]);
}

function placesOfType({ steps, types }: Trial, type: string | null, place: (ordinal: number) => number): number[] {
  const found: number[] = [];
  steps.ordinal.forEach((ordinal, i) => {
    const at = type === null || types[steps.type[i]] === type ? place(ordinal) : -1;
    if (at >= 0) found.push(at);
  });
  return found;
}
