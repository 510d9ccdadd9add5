/** Everything about the tensor that a pane shows. What is old stays until what is new is there. */
import { useMemo, useRef } from "react";
import type { Histogram } from "../../model/histogram";
import { isGradient } from "./reasons";
import {
  useSamples, useStep, useTensor, useTrial, useUnits, type Floats, type Loaded, type SampleTable, type StepTable,
  type TensorKey, type UnitTable,
} from "../../state/data";
import { useShown, type Pane, type Shown } from "../../state/page";

export interface TensorFacts {
  readonly kind: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** -1: it has no samples. */
  readonly batchDim: number;
  readonly module: string;
  readonly source: string;
  readonly raw: boolean;
  /** Of how many ranks it is put together. */
  readonly pieces: number;
  readonly histogram: Histogram;
  readonly number: (statistic: string) => number;
}

export interface TensorView {
  readonly shown: Shown;
  readonly key: TensorKey | null;
  readonly step: Loaded<StepTable>;
  /** Null: the step has no such tensor. */
  readonly facts: TensorFacts | null;
  readonly samples: Loaded<SampleTable>;
  readonly units: Loaded<UnitTable>;
  /** All samples that were kept. */
  readonly raw: Loaded<Floats>;
}

export function useTensorView(pane: Pane): TensorView {
  const shown = useShown(pane);
  const { trial, node, of, role, pass, step, type } = shown;
  const key = useMemo<TensorKey | null>(
    () => (trial !== null && node !== null && of !== null ? { trial, node, of, role, pass } : null),
    [trial, node, of, role, pass],
  );
  const table = useStep(trial, step, type);
  const facts = useMemo(() => factsOf(table.value, key), [table.value, key]);
  // Until the step itself is there, its neighbour says well enough what is worth asking for.
  const hasSamples = facts !== null && facts.batchDim >= 0;
  const samples = useSamples(hasSamples ? key : null, step, type);
  const units = useUnits(hasSamples && facts.shape.length > 1 ? key : null, step, type);
  const isKept = useKeepsRaw(shown);
  const raw = useTensor(facts?.raw && (isKept || !table.pending) ? key : null, step, null, type);
  return { shown, key, step: table, facts, samples, units, raw };
}

/** Whether any raw values were kept at the shown step. */
export function useKeepsRaw({ trial, ordinal }: Shown): boolean {
  const steps = useTrial(trial).value?.steps;
  return steps?.raw[steps.ordinal.indexOf(ordinal ?? -1)] ?? false;
}

function factsOf(table: StepTable | null, key: TensorKey | null): TensorFacts | null {
  const row = table && key ? table.find(key.node, key.of, key.role, key.pass) : -1;
  if (!table || row < 0) return null;
  return {
    kind: table.kind(row),
    dtype: table.dtype(row),
    shape: table.shape(row),
    batchDim: table.batchDim(row),
    module: table.module(row),
    source: table.source(row),
    raw: table.raw(row),
    pieces: table.pieces(row),
    histogram: { first: table.histFirst(row), counts: table.hist(row) },
    number: (statistic) => table.number(row, statistic),
  };
}

/** Whether what is looked at, a sample or everything, is a single number. */
export function isScalar({ shape, batchDim, number }: TensorFacts, sample: number | null): boolean {
  const count = number("count");
  return count === 1 || (sample !== null && batchDim >= 0 && count === shape[batchDim]);
}

/** The same of another tensor of the step; one that it does not have is none. */
export function isScalarIn(table: StepTable | null, key: TensorKey, sample: number | null): boolean {
  const facts = factsOf(table, key);
  return facts !== null && isScalar(facts, sample);
}

/** What was recorded of a node in a step, and of anything, for sentences about what was not. */
export function recordedIn(table: StepTable, node: string) {
  const rows = table.rowsOf(node);
  const noGradient = table.facts.extra.no_gradient;
  return {
    kind: rows.length ? table.kind(rows[0]) : null,
    recorded: [...new Set(rows.map((row) => table.of[row]))],
    anywhere: [...new Set(table.of)],
    noGradient: Array.isArray(noGradient) ? (noGradient as string[]) : [],
    hasGradients: table.of.some(isGradient),
  };
}

/** The last one that was complete: parts that belong together change together. */
export function useTogether<T>(now: T, isComplete: boolean): T {
  const last = useRef(now);
  if (isComplete) last.current = now;
  return last.current;
}
