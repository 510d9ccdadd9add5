/**
 * What the page shows and how that is changed: the one door for panels.
 *
 * Beyond what is said in look.ts: `trials` keeps its order when the main trial changes, so that colours stay with
 * their trials. The main trial is `useShown("a").trial`; `useTrials()` are the names on the page that really exist.
 */
import { useMemo } from "react";
import type { Catalog, Trial } from "../api/types";
import { askCatalog, askStep, askTensors, askTrial, keepOpened } from "../api/requests";
import type { StepTable } from "../api/tables";
import { isSpelledOut, isTooLong, keptAs } from "../model/folding";
import { changeLook, compareWith, mergePage, swapped } from "./changes";
import { useWatched } from "./gate";
import { type Look, type Page, type PagePart, type Pane, type Shown } from "./look";
import type { TensorColumns } from "./relax";
import { cache, useLoaded } from "./resource";
import { beginWork } from "./settled";
import { askStepIfAny, shownNow, trialsOf, watchShown, worldNow } from "./shown";
import { stepAfter } from "./stepping";
import { adjust, change, getState, watchState } from "./store";
import { batchOf, entriesOf, indexOf, ofsOf } from "./world";

export * from "./look";
export { isBare } from "./shown";
export { trialColor } from "./trial_color";

export function usePage(): Page {
  return useWatched(watchState, () => getState().page);
}

/** A part of the page: who reads it draws again only when it changes. `pick` must not make new objects. */
export function usePart<T>(pick: (page: Page) => T): T {
  return useWatched(watchState, () => pick(getState().page));
}

/** What is really shown: the same object until something in it changes. */
export function useShown(pane: Pane): Shown {
  return useWatched(watchShown, () => shownNow(pane));
}

/** A part of it, for who does not care about the rest. `pick` must not make new objects. */
export function useShownPart<T>(pane: Pane, pick: (shown: Shown) => T): T {
  return useWatched(watchShown, () => pick(shownNow(pane)));
}

/** The main trial. */
export const useMainTrial = (): string | null => useShownPart("a", (shown) => shown.trial);

let keptTrials: readonly string[] = [];

/** Names of the trials on the page, in the order of their colours. */
export function useTrials(): readonly string[] {
  return useWatched(watchShown, () => {
    const found = trialsOf(getState(), cache.peek(askCatalog.key).value as Catalog | null);
    if (found.join("\n") !== keptTrials.join("\n")) keptTrials = found;
    return keptTrials;
  });
}

export interface Choices {
  readonly types: readonly string[];
  readonly ofs: readonly string[];
  readonly samples: readonly { readonly sample: number; readonly category: string }[];
  readonly roles: readonly string[];
  readonly passes: readonly number[];
  /** Some node of the trial has several roles, or passes: the selector keeps its place. */
  readonly manyRoles: boolean;
  readonly manyPasses: boolean;
}

/** Which choices there are: all types and kinds of value of the trial; roles, passes and samples of the node. */
export function useChoices(pane: Pane): Choices {
  const { trial, step, type } = useShown(pane);
  useLoaded(trial === null ? null : askTrial(trial));
  useLoaded(trial === null || step === null ? null : askStepIfAny(trial, step, type));
  return choicesNow(pane);
}

/** Kinds of value that a trial has. Steps have the same, so that none need be loaded. */
export function useOfs(trial: string | null): readonly string[] {
  const described = useLoaded(trial === null ? null : askTrial(trial)).value;
  const tensors = useLoaded(trial === null ? null : askTensors(trial)).value;
  return useMemo(() => ofsOf(trial === null || !tensors ? null : worldNow(trial).tensors, described?.losses ?? []),
    [trial, described, tensors]);
}

/** The same outside of components, from what has been loaded. */
export function choicesNow(pane: Pane): Choices {
  const now = keptChoices[pane];
  const shown = shownNow(pane);
  if (now && now.shown === shown && now.version === cache.version) return now.choices;
  const choices = currentChoices(pane);
  keptChoices[pane] = { ...(keptChoices[pane] as KeptChoices), shown, version: cache.version };
  return choices;
}

function currentChoices(pane: Pane): Choices {
  const { trial, node, role, of, step, type } = shownNow(pane);
  const there = <T>(key: string): T | null => cache.peek(key).value as T | null;
  const described = trial === null ? null : there<Trial>(askTrial(trial).key);
  const table = trial === null || step === null ? null : there<StepTable>(askStep(trial, step, type).key);
  const columns = trial === null ? null : worldNow(trial).tensors;
  const inputs = [described, columns, table?.facts, node, role, of];
  const kept = keptChoices[pane];
  // While the table of the next step is on its way, the choices of the one before are the best guess.
  if (kept && inputs.every((input, i) => input === kept.inputs[i] || (i === 2 && !table))) return kept.choices;
  const choices = choicesOf(described, columns, { node, role, of }, columns && table);
  keptChoices[pane] = { inputs, choices, shown: null, version: -1 };
  return choices;
}

/** Several selectors ask for the same choices in one frame. */
interface KeptChoices {
  readonly inputs: readonly unknown[];
  readonly choices: Choices;
  readonly shown: Shown | null;
  readonly version: number;
}

const keptChoices: Record<Pane, KeptChoices | null> = { a: null, b: null };

function choicesOf(
  trial: Trial | null, columns: TensorColumns | null, { node, role, of }: Pick<Look, "node" | "role" | "of">,
  step: StepTable | null,
): Choices {
  const index = columns && indexOf(columns);
  const anywhere = index?.ofNode.get(node ?? "") ?? [];
  const ofNode = step ? thoseOf(step, columns as TensorColumns, node, anywhere) : anywhere;
  const ofRole = ofNode.filter((tensor) => columns?.role[tensor] === role);
  const ofTensor = ofRole.filter((tensor) => columns?.of[tensor] === of);
  const batch = Math.min(batchOf(columns, ofTensor), step?.batch || Infinity);
  const categories = step?.facts.categories ?? [];
  return {
    types: trial?.types ?? [],
    ofs: ofsOf(columns, trial?.losses ?? []),
    samples: Array.from({ length: batch }, (_, sample) => ({ sample, category: categories[sample] ?? "" })),
    roles: entriesOf(columns, "role", ofNode),
    passes: entriesOf(columns, "pass", ofRole).sort((a, b) => a - b),
    manyRoles: index?.manyRoles ?? false,
    manyPasses: index?.manyPasses ?? false,
  };
}

/** Tensors of a node that the shown step has: a role or pass of another step is no choice here. */
function thoseOf(
  step: StepTable, columns: TensorColumns, node: string | null, tensors: readonly number[],
): readonly number[] {
  const there = new Set(step.rowsOf(node ?? "").map((row) => `${step.pass[row]} ${step.role[row]}`));
  const left = tensors.filter((tensor) => there.has(`${columns.pass[tensor]} ${columns.role[tensor]}`));
  return left.length ? left : tensors;
}

/** A list of open modules that no address can hold gets a short name first; without an answer it stays as it is. */
async function keepLong(part: PagePart, open: readonly string[], transient: boolean): Promise<void> {
  const finish = beginWork();
  const kept = await keepOpened(shownNow("a").trial, open).then(keptAs, () => open);
  change(mergePage(getState(), { ...part, open: kept }), transient);
  finish();
}

export interface ChooseOptions {
  readonly pane?: Pane;
  /** While dragging: many changes make one entry of the history. */
  readonly transient?: boolean;
}

export const act = {
  /** A choice of the user. It is kept; older ones give way where they must, and come back. */
  choose(look: Partial<Look>, { pane = "a", transient = false }: ChooseOptions = {}): void {
    change(changeLook(getState(), look, pane, shownNow(pane)), transient);
  },
  /** Anything that is no choice of what to look at; objects are merged one level deep. */
  page(part: PagePart, { transient = false }: { transient?: boolean } = {}): void {
    if (part.open && isSpelledOut(part.open) && isTooLong(part.open)) void keepLong(part, part.open, transient);
    else change(mergePage(getState(), part), transient);
  },
  /** A part of what the metrics show. */
  metrics(part: Partial<Page["metrics"]>): void {
    act.page({ metrics: { ...getState().page.metrics, ...part } });
  },
  /** A part of what is shown of a trace. */
  trace(part: Partial<Page["trace"]>): void {
    act.page({ trace: { ...getState().page.trace, ...part } });
  },
  /** A part of what the colours show. */
  heat(part: Partial<Page["heat"]>, options: { transient?: boolean } = {}): void {
    act.page({ heat: { ...getState().page.heat, ...part } }, options);
  },
  /** Where the graph stands: it is in the address, but no entry of the history. */
  camera(camera: Page["camera"]): void {
    const { page } = getState();
    if (String(page.camera) !== String(camera)) adjust(mergePage(getState(), { camera }));
  },
  /** Looks at a second place that differs in these fields; null ends it. */
  compare(look: Partial<Look> | null): void {
    change(compareWith(getState(), look), false);
  },
  /** A becomes B and B becomes A. */
  swap(): void {
    change(swapped(getState(), shownNow("a")), false);
  },
  /** To a later (or earlier) recorded step, of the type that is shown or of any. */
  stepBy(count: number, sameType: boolean, pane: Pane = "a"): void {
    const shown = shownNow(pane);
    const wanted = sameType ? shown.type : getState().page.look.type;
    const to = shown.trial === null ? null : stepAfter(worldNow(shown.trial), shown, count, wanted);
    if (to) act.choose(to, { pane });
  },
  /** Follows the training: the newest step at once, and again whenever there is one. */
  follow(is: boolean): void {
    const state = getState();
    const next = is ? changeLook(state, { step: null }, "a", shownNow("a")) : state;
    change(mergePage(next, { follow: is }), false);
  },
};
