/**
 * What will probably be looked at next is fetched while nothing else is.
 *
 * Every hook that asks for something says how it would ask for it elsewhere. Once the page rests, the selections that
 * are one key or click away (steps around, other kinds of value, nodes along edges) are worked out with the same rules
 * as a real choice, and all hooks' questions are asked for them, nearest first.
 */
import { useEffect, useId, useRef } from "react";
import type { Request } from "../api/cache";
import { askStep, askTrial, type TensorKey } from "../api/requests";
import type { StepTable } from "../api/tables";
import type { Trial } from "../api/types";
import type { Union } from "../model/union";
import { useGate } from "./gate";
import { addAsker } from "./hold";
import { isReachable } from "./live";
import type { Look, Shown } from "./look";
import { cache } from "./resource";
import { shownIf, shownNow, worldNow } from "./shown";
import { stepAfter } from "./stepping";
import { getState } from "./store";
import { ofsOf } from "./world";

/** A question that a hook asks, and how it would ask it of another tensor or step. */
export interface Question {
  readonly trial: string;
  readonly key: TensorKey | null;
  readonly step: number | null;
  readonly type: string | null;
  /** What the tensor must have for the question to make sense. */
  readonly needs?: "samples" | "units" | "raw";
  readonly ask: (
    key: TensorKey | null, step: number | null, type: string | null, sample: number | null,
  ) => Request<unknown> | null;
  /** Beside what is one choice away: what else it may be about next. */
  readonly beside?: readonly Request<unknown>[];
}

const WAIT_MS = 60; // a drag passes many steps; only where it rests is worth it
const MOST_NODES = 6;
const STEPS_AROUND = [1, -1, 2, -2, 3, -3, -10, 10]; // the last two are a page up and down

const questions = new Map<string, readonly Question[]>();
let timer: ReturnType<typeof setTimeout> | undefined;
let graph: Union | null = null;

/** The graph along whose edges the user may walk. */
export const rememberGraph = (union: Union): void => void (graph = union);

export function useAhead(asked: readonly Question[]): void {
  const id = useId();
  const gate = useGate();
  const latest = useRef(asked);
  useEffect(() => {
    latest.current = asked;
    if (gate.isOpen) putQuestions(id, asked);
  });
  useEffect(() => {
    const remove = (): void => void questions.delete(id);
    const stop = gate.add({ open: () => putQuestions(id, latest.current), close: remove });
    return () => {
      stop();
      remove();
    };
  }, [id, gate]);
}

function putQuestions(id: string, asked: readonly Question[]): void {
  if (asked.length) questions.set(id, asked);
  else questions.delete(id);
  shownThen = shownNow("a");
  clearTimeout(timer);
  timer = setTimeout(() => cache.whenIdle(() => idle(run)), WAIT_MS);
}

let shownThen: Shown | null = null; // what the questions are about

/** The same questions, as they would be asked if `then` were shown. */
function questionsOf(now: Shown, then: Shown): Request<unknown>[] {
  return [...questions.values()].flat().flatMap((question) => moved(question, now, then) ?? []);
}

/** A choice was made: what it needs is on its way before the page begins to draw. */
function askAtOnce(): readonly Request<unknown>[] {
  const then = shownNow("a");
  if (!shownThen || then === shownThen) return [];
  clearTimeout(timer);
  cache.prefetch([]); // what is near is another thing now
  const requests = questionsOf(shownThen, then);
  for (const request of requests) cache.want(request);
  return requests;
}
addAsker(askAtOnce);

const idle = (call: () => void): void => {
  if (typeof requestIdleCallback === "undefined") setTimeout(call, 20);
  else requestIdleCallback(call, { timeout: 500 });
};

/** Works through the neighbours a few at a time: a key pressed meanwhile must not wait. */
function run(): void {
  const now = shownNow("a");
  const looks = nearLooks(now);
  const requests: Request<unknown>[] = [];
  const go = (): void => {
    if (shownNow("a") !== now || !isReachable()) return; // the user has moved on, and another run is about to begin
    const next = looks.shift();
    if (!next) return cache.prefetch([...requests, ...[...questions.values()].flat().flatMap(besideOf)]);
    const then = shownIf(next);
    requests.push(...questionsOf(now, then));
    idle(go);
  };
  go();
}

const besideOf = ({ beside }: Question): readonly Request<unknown>[] => beside ?? [];

/** Choices that are one step away, the likeliest first. */
function nearLooks(now: Shown): Partial<Look>[] {
  if (now.trial === null) return [];
  const steps = nearSteps(now);
  const ofs = ofsOf(worldNow(now.trial).tensors, []).filter((of) => of !== now.of).map((of) => ({ of }));
  const nodes = nearNodes(now.node).map((node) => ({ node }));
  return [...steps.slice(0, 2), ...ofs, ...nodes, ...steps.slice(2)];
}

function nearSteps(now: Shown): Partial<Look>[] {
  const [world, wanted] = [worldNow(now.trial as string), getState().page.look.type];
  return STEPS_AROUND.flatMap((away) => stepAfter(world, now, away, wanted) ?? []);
}

function nearNodes(node: string | null): string[] {
  if (!graph || node === null) return [];
  const { nodes, edges } = graph.graph;
  const found = new Set<string>();
  for (const [from, to] of edges) {
    const [a, b] = [nodes[from].node, nodes[to].node];
    if (a === node && b !== node) found.add(b);
    if (b === node && a !== node) found.add(a);
    if (found.size >= MOST_NODES) break;
  }
  return [...found];
}

/**
 * Asking in vain would only fill the browser's console with refusals. Where the table of a step has not come yet, the
 * one that is shown says well enough what its tensors are like.
 */
function isAnswered(needs: Question["needs"], now: Shown, then: Shown): boolean {
  if (!needs) return true;
  const table = tableOf(then) ?? tableOf(now);
  if (!table || then.node === null || then.of === null) return false;
  const row = table.find(then.node, then.of, then.role, then.pass);
  if (row < 0) return false;
  if (needs === "raw") return table.raw(row) && keepsRaw(then);
  return table.batchDim(row) >= 0 && (needs === "samples" || table.shape(row).length > 1);
}

function tableOf({ trial, step, type }: Shown): StepTable | null {
  if (trial === null || step === null) return null;
  return cache.peek(askStep(trial, step, type).key).value as StepTable | null;
}

function keepsRaw({ trial, ordinal }: Shown): boolean {
  const described = trial === null ? null : (cache.peek(askTrial(trial).key).value as Trial | null);
  return described?.steps.raw[described.steps.ordinal.indexOf(ordinal ?? -1)] ?? false;
}

/** The question as it would be asked if `then` were shown; null if it is about something else. */
function moved({ trial, key, step, type, needs, ask }: Question, now: Shown, then: Shown): Request<unknown> | null {
  if (!isAnswered(needs, now, then)) return null;
  if (key && (key.node !== now.node || key.of !== now.of || then.node === null || then.of === null)) return null;
  const { node, of, role, pass } = then;
  const next = key && { trial, node: node as string, of: of as string, role, pass };
  if (step !== null && step !== now.step) return null;
  return ask(next, step === null ? null : then.step, type === now.type ? then.type : type, then.sample);
}
