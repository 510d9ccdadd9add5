/** Every question the page asks, each with the key under which its answer is kept. */
import type { Request } from "./cache";
import {
  address, putJson, readArrow, readFloats, readJson, trialAddress, type Answer, type Body, type Floats, type Query,
} from "./client";
import { namedIn, stampFor, type Named } from "./named";
import { overviewTable, type OverviewTable } from "./overview";
import { readPicture, type PictureAnswer } from "./pictures";
import { askFirst } from "./start";
import {
  heatTable, histogramTable, layersTable, metricTable, sampleTable, seriesTable, StepTable, stepSampleTable, unitTable,
  type HeatTable, type HistogramTable, type LayersTable, type MetricTable, type SampleTable, type SeriesTable,
  type StepSampleTable,
  type UnitTable,
} from "./tables";
import type {
  Catalog, Findings, Gap, Graph, Layout, Modules, Note, OverviewFindings, Silencing, Tensors, Trial, ViewResult, Views,
} from "./types";
import type { Table } from "@uwdata/flechette";

/** One tensor over all steps. */
export interface TensorKey {
  readonly trial: string;
  readonly node: string;
  readonly of: string;
  readonly role: string | null;
  readonly pass: number | null;
}

/**
 * Keys begin with what makes an answer old:
 *
 *     catalog, views      the folder, the file of views
 *     findings <trial>    the server says when there are others
 *     overview …          more of some trial comes, or more of all trials has been read
 *     grows <trial> …     more of it comes while the trial runs
 *     fixed <trial> …     never changes
 */
export function asking<T>(key: string, url: string, read: (body: Body) => Answer<T>): Request<T> {
  return { key, url, read, load: async (signal) => read(await askFirst(url, signal)) };
}

/** Takes its time, or is large: whoever waits for something else must not wait for it, too. */
export function alone<T>({ key, load, read }: Request<T>): Request<T> {
  return { key, load, read };
}

export const json = <T>(key: string, url: string): Request<T> => asking(key, url, readJson<T>);

export function arrow<T>(key: string, url: string, read: (table: Table) => T): Request<T> {
  return asking(key, url, (body) => {
    const { value, bytes } = readArrow(body);
    return { value: read(value), bytes };
  });
}

const grows = (trial: string, url: string): string => `grows ${trial}\n${url}`;
const fixed = (trial: string, url: string): string => `fixed ${trial}\n${url}`;
export const growsWith = (trial: string) => (key: string): boolean => key.startsWith(`grows ${trial}\n`);

const growingJson = <T>(trial: string, path: string): Request<T> => {
  const url = trialAddress(trial, path);
  return json<T>(grows(trial, url), url);
};

/** The page has begun to ask for it before its code was there. */
export const askCatalog: Request<Catalog> = alone(json("catalog", address("catalog")));
export const askViews: Request<Views> = alone(json("views", address("views")));
export const askTrial = (trial: string): Request<Trial> => growingJson(trial, "");
export const askTensors = (trial: string): Request<Tensors> => growingJson(trial, "tensors");
export const askNotes = (trial: string): Request<readonly Note[]> => growingJson(trial, "notes");
export const askGaps = (trial: string): Request<readonly Gap[]> => growingJson(trial, "gaps");

export const askOverview: Request<OverviewTable> = alone(arrow("overview", address("overview"), overviewTable));
export const askOverviewFindings: Request<OverviewFindings> =
  alone(json("overview findings", address("overview/findings")));

export const askFindings = (trial: string): Request<Findings> =>
  alone(json(`findings ${trial}`, trialAddress(trial, "findings")));
export const saveSilence = async (trial: string, wanted: Silencing): Promise<void> =>
  void (await putJson(trialAddress(trial, "findings"), wanted));

function fixedJson<T>(trial: string, path: string): Request<T> {
  const url = trialAddress(trial, path);
  return json<T>(fixed(trial, url), url);
}

export const askGraph = (trial: string, hash: string): Request<Graph> =>
  fixedJson(trial, `graphs/${encodeURIComponent(hash)}`);
export const askModules = (trial: string): Request<Modules> => fixedJson(trial, "modules");
export const askLayout = (trial: string): Request<Layout> => fixedJson(trial, "layout");
/**
 * Where everything is while some modules are open; `open` null: what a reader should see first. `graphs` are trials and
 * hashes. The arrangement travels along, so that it is shown before it has been saved.
 */
export function askPicture(
  graphs: readonly (readonly [string, string])[], trial: string, open: readonly string[] | null, layout: Layout,
): Request<PictureAnswer> {
  const isArranged = Object.keys(layout.pins).length + Object.keys(layout.renames).length + layout.groups.length > 0;
  const arrangement = isArranged ? JSON.stringify(layout) : null;
  const url = address("picture", { trial, open: open && open.join(","), arrangement });
  const whole = url + graphs.map(([of, hash]) => `&graph=${encodeURIComponent(`${of}/${hash}`)}`).join("");
  return alone(asking(fixed(trial, whole), whole, readPicture));
}

export const saveLayout = async (trial: string, layout: Layout): Promise<void> =>
  void (await putJson(trialAddress(trial, "layout"), layout));

/** The short name under which the server keeps a list of open modules; `trial` null: of the trace that is served. */
export async function keepOpened(trial: string | null, open: readonly string[]): Promise<string> {
  const answer = await putJson(trial === null ? address("trace/opened") : trialAddress(trial, "opened"), open);
  return ((await answer.json()) as { readonly name: string }).name;
}

export const askStep = (trial: string, step: number, type: string | null): Request<StepTable> =>
  withNames(trial, `steps/${step}`, { type }, `steps of ${trial}`, (table, named) => new StepTable(table, named));

/** One sample of the batch, in all tensors of a step. */
export const askStepSample = (
  trial: string, step: number, type: string | null, sample: number,
): Request<StepSampleTable> =>
  withNames(trial, `steps/${step}/samples/${sample}`, { type }, `samples of ${trial}`, stepSampleTable);

/** Says which names are known, so that they need not be told again. What was asked for is the same either way. */
function withNames<T>(
  trial: string, path: string, query: Query, what: string, read: (table: Table, named: Named) => T,
): Request<T> {
  const key = fixed(trial, trialAddress(trial, path, query));
  const url = trialAddress(trial, path, { ...query, names: stampFor(what) });
  return arrow(key, url, (table) => read(table, namedIn(table, what)));
}

export function askHeat(
  trial: string, of: string, statistic: string, pass: number | null = null,
): Request<HeatTable> {
  const url = trialAddress(trial, "heat", { of, statistic, pass });
  return alone(arrow(grows(trial, url), url, heatTable));
}

export type LayerRows = "outputs" | "parameters";

export function askLayers(
  trial: string, of: string, statistic: string, rows: LayerRows | null,
): Request<LayersTable> {
  const url = trialAddress(trial, "layers", { of, statistic, rows });
  return alone(arrow(grows(trial, url), url, layersTable));
}

const names = ({ node, of, role, pass }: TensorKey) => ({ node, of, role, pass });

export interface SeriesOptions {
  readonly type?: string | null;
  readonly sample?: number | null;
  readonly unit?: number | null;
}

export function askSeries(
  key: TensorKey, statistics: readonly string[], options: SeriesOptions = {},
): Request<SeriesTable> {
  const query = { ...names(key), statistics: statistics.join(","), ...options };
  const url = trialAddress(key.trial, "series", query);
  return arrow(grows(key.trial, url), url, (table) => seriesTable(table, statistics));
}

export function askHistograms(key: TensorKey, type: string | null): Request<HistogramTable> {
  const url = trialAddress(key.trial, "histograms", { ...names(key), type });
  return arrow(grows(key.trial, url), url, histogramTable);
}

export function askSamples(key: TensorKey, step: number, type: string | null): Request<SampleTable> {
  const url = trialAddress(key.trial, "samples", { ...names(key), step, type });
  return arrow(fixed(key.trial, url), url, sampleTable);
}

export function askUnits(key: TensorKey, step: number, type: string | null): Request<UnitTable> {
  const url = trialAddress(key.trial, "units", { ...names(key), step, type });
  return arrow(fixed(key.trial, url), url, unitTable);
}

export function askTensor(
  key: TensorKey, step: number, type: string | null, sample: number | null,
): Request<Floats> {
  const url = trialAddress(key.trial, "tensor", { ...names(key), step, type, sample });
  return asking(fixed(key.trial, url), url, readFloats);
}

export function askMetrics(trial: string, wanted: readonly string[] | null): Request<MetricTable> {
  const chosen = wanted ? `?${wanted.map((name) => `names=${encodeURIComponent(name)}`).join("&")}` : "";
  const url = trialAddress(trial, "metrics") + chosen;
  return alone(arrow(grows(trial, url), url, metricTable));
}

export function askView(name: string, selection: unknown, version: number): Request<ViewResult> {
  const url = address(`views/${encodeURIComponent(name)}`, { selection: JSON.stringify(selection) });
  return alone(json(`view ${version} ${url}`, url));
}
