/**
 * What panels read from the server: one hook per question. Null arguments ask for nothing.
 *
 * Everything comes from one cache, is loaded once however many ask, and stays on screen until its successor is there.
 * `useGraph` takes several trials, too, and gives the union of their graphs (model/union.ts).
 */
import { useCallback, useMemo } from "react";
import type { Request } from "../api/cache";
import type { Floats } from "../api/client";
import {
  askCatalog, askGaps, askGraph, askHeat, askHistograms, askLayers, askLayout, askMetrics, askModules, askNotes,
  askOverview, askPicture,
  askSamples, askSeries, askStepSample, askTensor, askTrial, askUnits, askView, askViews, saveLayout,
  type LayerRows, type SeriesOptions, type TensorKey,
} from "../api/requests";
import type { OverviewTable, OverviewTrial, TrialMetric } from "../api/overview";
import type { PictureAnswer } from "../api/pictures";
import type {
  HeatTable, HistogramTable, LayersTable, MetricCurve, MetricTable, SampleTable, SeriesTable, StepSampleTable,
  StepTable, UnitTable,
} from "../api/tables";
import type {
  Catalog, Gap, Graph, Layout, Modules, Note, Statistic, Trial, ViewResult, Views, ViewSelection,
} from "../api/types";
import { STATISTICS } from "../api/types";
import { unionGraphs, type Union } from "../model/union";
import { useAll } from "./many";
import { rememberGraph, useAhead, type Question } from "./prefetch";
import { cache, useLoaded, type Loaded } from "./resource";
import { askStepIfAny, isBare } from "./shown";
import { cannotBeWritten, keepHere, keptHere } from "./kept_layout";
import { viewsVersion } from "./live";

export type {
  Catalog, Floats, Gap, Graph, HeatTable, HistogramTable, Layout, Loaded, MetricCurve, MetricTable, Modules, Note,
  OverviewTable, OverviewTrial, LayerRows, LayersTable, TrialMetric,
  SampleTable, SeriesOptions, SeriesTable, Statistic, StepTable, TensorKey, Trial, Union, UnitTable, ViewResult, Views,
  ViewSelection,
};

export const useCatalog = (): Loaded<Catalog> => useLoaded(askCatalog);
export const useTrial = (name: string | null): Loaded<Trial> => useLoaded(name === null ? null : askTrial(name));
/** What a trial has of whole tensors. */
export const useStatistics = (trial: string | null): readonly Statistic[] =>
  useTrial(trial).value?.statistics ?? STATISTICS;
/** All tensors of one step. Of several steps with one number `type` says which. */
export function useStep(trial: string | null, step: number | null, type: string | null): Loaded<StepTable> {
  const question = trial === null || step === null ? null : {
    trial, key: null, step, type,
    ask: (_: TensorKey | null, at: number | null, of: string | null) => 
      at === null ? null : askStepIfAny(trial, at, of),
  };
  return useAsked<StepTable>(question);
}

/** One sample of the batch, in all tensors of one step. */
export function useStepSample(
  trial: string | null, step: number | null, type: string | null, sample: number | null,
): Loaded<StepSampleTable> {
  const isWanted = trial !== null && step !== null;
  // Of the whole batch it asks for nothing, but of a sample that is chosen next it will.
  const question = !isWanted ? null : {
    trial, key: null, step, type,
    ask: (_: TensorKey | null, at: number | null, of: string | null, next: number | null) =>
      at === null || next === null || isBare(trial, at, of) ? null : askStepSample(trial, at, of, next),
  };
  useAhead(question ? [question] : NO_QUESTIONS);
  const isThere = isWanted && sample !== null && !isBare(trial, step, type);
  return useLoaded(isThere ? askStepSample(trial, step, type, sample) : null);
}

const MOST_GRAPHS = 16; // of a network that is different at every step, the newest say enough

/** The union of all graphs of one or several trials, so that nothing moves while steps change. */
export function useGraph(trials: string | readonly string[] | null): Loaded<Union> {
  const names = typeof trials === "string" ? [trials] : (trials ?? []);
  const described = useAll(names.map(askTrial));
  const requests = described.values.flatMap((trial) =>
    trial ? trial.graphs.slice(-MOST_GRAPHS).map((hash) => askGraph(trial.name, hash)) : [],
  );
  const graphs = useAll(requests);
  const isWhole = described.values.every(Boolean) && graphs.values.every(Boolean);
  const there = isWhole ? (graphs.values as readonly Graph[]) : null;
  const key = there?.map((graph) => graph.hash).join("+") ?? null;
  const known = unionOf(key, there);
  if (known && !sourcesOf.has(known)) {
    const trialOf = new Map(
      described.values.flatMap((trial) => trial?.graphs.map((hash): [string, string] => [hash, trial.name]) ?? []),
    );
    sourcesOf.set(known, known.hashes.map((hash) => [trialOf.get(hash) ?? names[0], hash] as const));
  }
  const problem = described.problem ?? graphs.problem;
  const pending = known === null && problem === null && names.length > 0;
  const last = useLast(known, names.length > 0);
  if (known) rememberGraph(known);
  return useMemo(() => ({ value: last, pending, problem }), [last, pending, problem]);
}

const unions = new Map<string, Union>();

/** The same object for the same graphs: whoever lays it out need not do so again. */
function unionOf(key: string | null, graphs: readonly Graph[] | null): Union | null {
  if (key === null || graphs === null) return null;
  let found = unions.get(key);
  if (!found) {
    const different = [...new Map(graphs.map((graph) => [graph.hash, graph])).values()];
    found = unionGraphs(different);
    unions.set(key, found);
    if (unions.size > 8) unions.delete(unions.keys().next().value as string);
  }
  return found;
}

/** Where the boxes of a graph are while some modules are open. */
export function usePictureNumbers(
  union: Union | null, trial: string | null, open: readonly string[] | null, layout: Layout,
): Loaded<PictureAnswer> {
  const sources = union ? sourcesOf.get(union) : undefined;
  // Where no tensor was recorded there is no graph, and no picture of one.
  return useLoaded(sources?.length && trial !== null ? askPicture(sources, trial, open, layout) : null);
}

/** Which trial has each of the graphs of a union. */
const sourcesOf = new WeakMap<Union, readonly (readonly [string, string])[]>();

/** One statistic of all tensors over all steps. An empty statistic asks for nothing. */
export const useHeat = (
  trial: string | null, of: string | null, statistic: string, pass: number | null = null,
): Loaded<HeatTable> => useLoaded(trial === null || !statistic ? null : askHeat(trial, of ?? "value", statistic, pass));

/** Layers × steps; the other kinds of value, and what else is likely to be chosen, are fetched ahead. */
export function useLayers(
  key: TensorKey | null, trial: string | null, of: string | null, statistic: string, rows: LayerRows | null,
  likely: readonly string[] = [], canBe: (of: string) => boolean = () => true,
): Loaded<LayersTable> {
  const isWanted = trial !== null && of !== null && statistic !== "";
  const beside = isWanted ? likely.map((name) => askLayers(trial, of, name, rows)) : [];
  const rowsOf = (next: string): LayerRows | null => (next === "update" ? "parameters" : rows);
  const ask: Question["ask"] = (next) =>
    next && canBe(next.of) ? askLayers(next.trial, next.of, statistic, rowsOf(next.of)) : null;
  useAhead(isWanted && key ? [{ trial, key, step: null, type: null, ask, beside }] : NO_QUESTIONS);
  return useLoaded(isWanted ? askLayers(trial, of, statistic, rows) : null);
}

/** The same of outputs and parameters together, for a single row of it. */
export const useEvidence = (trial: string | null, of: string, statistic: string): Loaded<LayersTable> =>
  useLoaded(trial === null || !statistic ? null : askLayers(trial, of, statistic, null));

export const useOverview = (): Loaded<OverviewTable> => useLoaded(askOverview);

export const useSeries = (
  key: TensorKey | null, statistics: readonly string[], options: SeriesOptions = {},
): Loaded<SeriesTable> =>
  useOfTensor<SeriesTable>(statistics.length ? key : null, null, options.type ?? null, (of, _, type) =>
    askSeries(of, statistics, { ...options, type }),
  );

export const useHistograms = (key: TensorKey | null, type: string | null = null): Loaded<HistogramTable> =>
  useOfTensor<HistogramTable>(key, null, type, (of, _, its) => askHistograms(of, its));

export const useSamples = (key: TensorKey | null, step: number | null, type: string | null = null) =>
  useOfTensor<SampleTable>(
    step === null ? null : key, step, type, (of, at, its) => askSamples(of, at as number, its), "samples",
  );

export const useUnits = (key: TensorKey | null, step: number | null, type: string | null = null) =>
  useOfTensor<UnitTable>(
    step === null ? null : key, step, type, (of, at, its) => askUnits(of, at as number, its), "units",
  );

/** Raw values: all kept samples, or one. */
export const useTensor = (
  key: TensorKey | null, step: number | null, sample: number | null = null, type: string | null = null,
) =>
  useOfTensor<Floats>(
    step === null ? null : key, step, type, (of, at, its) => askTensor(of, at as number, its, sample), "raw",
  );

/** Null: all metrics. */
export const useMetrics = (trial: string | null, names: readonly string[] | null = null): Loaded<MetricTable> =>
  useLoaded(trial === null || names?.length === 0 ? null : askMetrics(trial, names));

/** Metrics of several trials, in their order. */
export const useMetricsOf = (trials: readonly string[], names: readonly string[] | null = null) =>
  useAll(names?.length === 0 ? [] : trials.map((trial) => askMetrics(trial, names)));

/** The same tensor in several trials; one that a trial does not have is null. `others`: what to ask of another one. */
export const useSeriesOf = (
  keys: readonly TensorKey[], statistics: readonly string[], options: SeriesOptions = {},
  others: (key: TensorKey, sample: number | null) => readonly string[] = () => statistics,
) => {
  const asked = statistics.length ? keys : [];
  const ask: Question["ask"] = (of, _step, _type, sample) =>
    of && askSeries(of, others(of, sample), sample === null ? {} : { sample });
  useAhead(asked.map((key) => ({ trial: key.trial, key, step: null, type: null, ask })));
  return useAll(asked.map((key) => askSeries(key, statistics, options)));
};

export const useTrialsOf = (names: readonly string[]) => useAll(names.map(askTrial));

export const useNotes = (trial: string | null): Loaded<readonly Note[]> =>
  useLoaded(trial === null ? null : askNotes(trial));
export const useGaps = (trial: string | null): Loaded<readonly Gap[]> =>
  useLoaded(trial === null ? null : askGaps(trial));
export const useModules = (trial: string | null): Loaded<Modules> =>
  useLoaded(trial === null ? null : askModules(trial));

/** How the user arranged the graph; saving shows at once and answers with a sentence if it failed. */
export function useLayout(trial: string | null): readonly [Loaded<Layout>, (layout: Layout) => Promise<string | null>] {
  const loaded = useLoaded(trial === null ? null : askLayout(trial));
  const save = useCallback(
    async (layout: Layout) => {
      if (trial === null) return null;
      cache.put(askLayout(trial).key, layout);
      return saveLayout(trial, layout).then(
        () => null,
        (error: unknown) =>
          cannotBeWritten(error) && keepHere(trial, layout) ? null : String((error as Error).message),
      );
    },
    [trial],
  );
  const here = trial === null ? null : keptHere(trial);
  return [useMemo(() => (here ? { ...loaded, value: here } : loaded), [here, loaded]), save];
}

export const useViews = (): Loaded<Views> => useLoaded(askViews);
/** Runs again when the selection or the file changes. */
export const useViewResult = (name: string | null, selection: ViewSelection | null): Loaded<ViewResult> =>
  useLoaded(name === null || selection === null ? null : askView(name, selection, viewsVersion()));

type AskOf<T> = (key: TensorKey, step: number | null, type: string | null) => Request<T>;

/** Something about one tensor; the same of its neighbours is fetched when there is time. */
function useOfTensor<T>(
  key: TensorKey | null, step: number | null, type: string | null, ask: AskOf<T>, needs?: Question["needs"],
): Loaded<T> {
  const question = key && {
    trial: key.trial, key, step, type, needs,
    ask: (of: TensorKey | null, at: number | null, its: string | null) => of && ask(of, at, its),
  };
  return useAsked<T>(question);
}

const NO_QUESTIONS: readonly Question[] = [];

function useAsked<T>(question: Question | null): Loaded<T> {
  useAhead(question ? [question] : NO_QUESTIONS);
  return useLoaded((question?.ask(question.key, question.step, question.type, null) ?? null) as Request<T> | null);
}

/** The last one there was, while the next is on its way. */
function useLast<T>(value: T | null, isWanted: boolean): T | null {
  const kept = useMemo(() => ({ value: null as T | null }), []);
  if (value !== null) kept.value = value;
  return isWanted ? kept.value : null;
}
