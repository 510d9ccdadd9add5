/** Answers that came with the page, as answers to the questions that would be asked. */
import type { Answer } from "./client";
import type { Request } from "./questions";
import {
  askCatalog, askGaps, askGraph, askHistograms, askLayout, askMetrics, askModules, askSamples, askSeries, askStep,
  askTensor, askTensors, askTrial, askUnits, type TensorKey,
} from "./requests";
import { nameOf, takeAtOnce } from "./start";

type Ask = (trial: string, part: string, query: URLSearchParams) => Request<unknown>;
type AskTensor = (key: TensorKey, step: number, type: string | null) => Request<unknown>;

const keyOf = (trial: string, query: URLSearchParams): TensorKey => ({
  trial, node: query.get("node") ?? "", of: query.get("of") ?? "", role: query.get("role"),
  pass: Number(query.get("pass")),
});
const atStep = (ask: AskTensor): Ask => (trial, _, query) =>
  ask(keyOf(trial, query), Number(query.get("step")), query.get("type"));

/** The path behind a trial -> the question. */
const QUESTIONS: readonly (readonly [RegExp, Ask])[] = [
  [/^$/, askTrial],
  [/^tensors$/, askTensors],
  [/^modules$/, askModules],
  [/^layout$/, askLayout],
  [/^graphs\/(.+)$/, askGraph],
  [/^steps\/(\d+)$/, (trial, step, query) => askStep(trial, Number(step), query.get("type"))],
  [/^gaps$/, askGaps],
  [/^metrics$/, (trial, _, query) => askMetrics(trial, query.getAll("names"))],
  [/^series$/, (trial, _, query) => askSeries(keyOf(trial, query), (query.get("statistics") ?? "").split(","))],
  [/^histograms$/, (trial, _, query) => askHistograms(keyOf(trial, query), null)],
  [/^samples$/, atStep(askSamples)],
  [/^units$/, atStep(askUnits)],
  [/^tensor$/, atStep((key, step, type) => askTensor(key, step, type, null))],
];

/** The question that an address answers; null if nobody would ask it like this. */
function questionOf(name: string): Request<unknown> | null {
  if (name === "catalog") return askCatalog;
  const [path, query = ""] = name.split("?", 2);
  const [, trial, rest = ""] = /^trials\/([^/]+)(?:\/(.*))?$/.exec(path) ?? [];
  if (trial === undefined) return null;
  for (const [form, ask] of QUESTIONS) {
    const found = form.exec(rest);
    const request = found && ask(trial, found[1] ?? "", new URLSearchParams(query));
    // A name with signs in it that mean something in an address may have come apart in the wrong place.
    const url = request && (request.url ?? request.key.split("\n")[1]);
    if (url) return nameOf(url) === name ? request : null;
  }
  return null;
}

/** What can be read of the answers at these addresses; the rest is asked for as always. */
export function givenAnswers(addresses: readonly string[]): (readonly [Request<unknown>, Answer<unknown>])[] {
  return addresses.flatMap((name) => {
    const request = questionOf(name);
    const body = request?.read ? takeAtOnce(name) : null;
    if (!request?.read || !body) return [];
    try {
      return [[request, request.read(body)] as const];
    } catch {
      return [];
    }
  });
}
