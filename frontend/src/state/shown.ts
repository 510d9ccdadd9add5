/** What both panes show, derived from the state and from what has been loaded, once per change of either. */
import type { Request } from "../api/cache";
import type { Catalog, Tensors, Trial } from "../api/types";
import { askCatalog, askLayout, askModules, askStep, askTensors, askTrial } from "../api/requests";
import type { StepTable } from "../api/tables";
import { nameOf, summaryOf } from "../model/ranks";
import { addAsker } from "./hold";
import { NOTHING_SHOWN, isComparing, type Field, type Look, type Pane, type Shown, type State } from "./look";
import { relax, type World } from "./relax";
import { cache } from "./resource";
import { getState, watchState } from "./store";
import { worldOf } from "./world";

/** Names of the trials on the page: those chosen that can be read, else the newest. */
export function trialsOf(state: State, catalog: Catalog | null): readonly string[] {
  if (!catalog) return state.page.trials;
  const readable = catalog.trials.filter((trial) => trial.readable);
  const { trials, look } = state.page;
  const wanted = look.trial === null || trials.includes(look.trial) ? trials : [...trials, look.trial];
  const chosen = wanted.filter((name) => summaryOf(name, readable));
  if (chosen.length) return chosen;
  // One that has steps tells more than one that is about to begin.
  const best = readable.reduce<(typeof readable)[number] | null>(
    (newest, trial) => (!newest || rank(trial) > rank(newest) ? trial : newest), null,
  );
  // Where one rank alone has recorded, there is no whole of all.
  return best ? [nameOf(best.name, best.ranks.length === 1 ? best.ranks[0] : null)] : [];
}

const rank = (trial: { steps: number; created: number; updated: number }): number =>
  (trial.steps > 0 ? 1e12 : 0) + trial.created;

const worlds = new Map<string, { trial: Trial | null; tensors: Tensors | null; world: World }>();

/** The world of a trial; the same one until more of it is known. */
export function worldNow(name: string): World {
  const trial = cache.peek(askTrial(name).key).value as Trial | null;
  const tensors = cache.peek(askTensors(name).key).value as Tensors | null;
  let found = worlds.get(name);
  if (!found || found.trial !== trial || found.tensors !== tensors) {
    found = { trial, tensors, world: worldOf(name, trial, tensors) };
    worlds.set(name, found);
  }
  return found.world;
}

/** Whether a step is known to have no tensors: then there is no table of it. Of several with one number the newest. */
export function isBare(trial: string, step: number, type: string | null): boolean {
  const described = cache.peek(askTrial(trial).key).value as Trial | null;
  if (!described) return false;
  const { number, type: types, tensors } = described.steps;
  const isIt = (place: number): boolean =>
    number[place] === step && (type === null || described.types[types[place]] === type);
  for (let place = number.length - 1; place >= 0; place--) if (isIt(place)) return tensors[place] === 0;
  return false;
}

/** All tensors of a step; null if there are none. */
export const askStepIfAny = (trial: string, step: number, type: string | null): Request<StepTable> | null =>
  isBare(trial, step, type) ? null : askStep(trial, step, type);

/** Trials that a pane may be about: the wanted one first. */
function candidates(pane: Pane, look: Look, state: State, names: readonly string[]): readonly string[] {
  if (pane === "b" && state.page.other.trial) return [state.page.other.trial];
  const wanted = look.trial !== null && names.includes(look.trial) ? look.trial : names[0];
  return wanted === undefined ? [] : [wanted, ...names.filter((name) => name !== wanted)];
}

interface Kept {
  readonly inputs: readonly unknown[];
  readonly shown: Shown;
  readonly state: State;
  readonly version: number;
}

const kept: Record<Pane, Kept | null> = { a: null, b: null };

export function shownNow(pane: Pane): Shown {
  const state = getState();
  const { version } = cache;
  const before = kept[pane];
  if (before && before.state === state && before.version === version) return before.shown; // asked dozens of times
  const own = pane === "b" && isComparing(state.page);
  const look: Look = own ? { ...state.page.look, ...state.page.other } : state.page.look;
  const recent: readonly Field[] = own ? [...new Set([...state.recentOther, ...state.recent])] : state.recent;
  const catalog = cache.peek(askCatalog.key).value as Catalog | null;
  const places = candidates(pane, look, state, trialsOf(state, catalog)).map(worldNow);
  const inputs = [JSON.stringify(look), recent.join(), ...places];
  const last = kept[pane];
  if (last && last.inputs.length === inputs.length && last.inputs.every((input, i) => input === inputs[i])) {
    kept[pane] = { ...last, state, version };
    return last.shown;
  }
  const fresh = places.length ? relax(places, look, recent) : NOTHING_SHOWN;
  const shown = last && JSON.stringify(last.shown) === JSON.stringify(fresh) ? last.shown : fresh;
  kept[pane] = { inputs, shown, state, version };
  return shown;
}

/** What would be shown after another choice. */
export function shownIf(choice: Partial<Look>): Shown {
  const state = getState();
  const look: Look = { ...state.page.look, ...choice };
  const fields = Object.keys(choice) as Field[];
  const recent = [...fields, ...state.recent.filter((field) => !fields.includes(field))];
  const catalog = cache.peek(askCatalog.key).value as Catalog | null;
  const places = candidates("a", look, state, trialsOf(state, catalog)).map(worldNow);
  return places.length ? relax(places, look, recent) : NOTHING_SHOWN;
}

const watchers = new Set<() => void>();
let stopFollowing: (() => void) | null = null;

/** Calls back whenever `shownNow` may have changed, and has what it needs loaded: once for all who watch. */
export function watchShown(call: () => void): () => void {
  watchers.add(call);
  stopFollowing ??= follow(() => {
    for (const each of [...watchers]) each();
  });
  return () => {
    watchers.delete(call);
    if (watchers.size > 0) return;
    stopFollowing?.();
    stopFollowing = null;
  };
}

function follow(changed: () => void): () => void {
  const stops = new Map<string, () => void>();
  const want = (): readonly Request<unknown>[] => {
    const catalog = cache.peek(askCatalog.key).value as Catalog | null;
    const state = getState();
    const names = new Set(trialsOf(state, catalog));
    if (state.page.other.trial) names.add(state.page.other.trial);
    const ofTrials = [...names].flatMap((name): Request<unknown>[] => [askTrial(name), askTensors(name)]);
    const requests: readonly Request<unknown>[] = [askCatalog, ...ofTrials];
    // The graph cannot be laid out without these; they travel together with the trial.
    const beside = stops.size < 2 ? [...names] : [];
    for (const name of beside) for (const ask of [askModules(name), askLayout(name)]) cache.want<unknown>(ask);
    for (const request of requests) {
      cache.want(request);
      if (!stops.has(request.key)) stops.set(request.key, cache.watch(request.key, react));
    }
    return requests;
  };
  const react = (): void => {
    want();
    changed();
  };
  want();
  const endings = [addAsker(want), watchState(changed)];
  return () => {
    for (const end of endings) end();
    for (const each of stops.values()) each();
  };
}
