/** News of a running training: what has grown is asked for again; the selection is never touched, unless following. */
import { useSyncExternalStore } from "react";
import { listen } from "../api/events";
import { askCatalog, askFindings, askOverview, askOverviewFindings, askViews, growsWith } from "../api/requests";
import { cache } from "./resource";
import { shownNow } from "./shown";
import { adjust, getState } from "./store";

const AT_MOST_EVERY_MS = 1000;

export interface Connection {
  /** False: the server has gone; the browser keeps trying. */
  readonly reachable: boolean;
  /** When something last arrived, in milliseconds; 0: never. */
  readonly heard: number;
}

let connection: Connection = { reachable: true, heard: 0 };
let version = 0; // of the file with custom views
const watchers = new Set<() => void>();
const sizes = new Map<string, string>();
const waiting = new Map<string, ReturnType<typeof setTimeout>>();

export const viewsVersion = (): number => version;

function tell(next: Connection): void {
  connection = next;
  for (const call of [...watchers]) call();
}

function watch(call: () => void): () => void {
  watchers.add(call);
  return () => watchers.delete(call);
}

export const isReachable = (): boolean => connection.reachable;
export const useConnection = (): Connection => useSyncExternalStore(watch, () => connection);

/** Asks again for all that has grown; not more often than once a second, as that may be much. */
function refresh(trial: string): void {
  if (waiting.has(trial)) return;
  const run = (): void => {
    waiting.delete(trial);
    stayHere();
    cache.invalidate(growsWith(trial));
    cache.invalidate((key) => key === askCatalog.key);
  };
  waiting.set(trial, setTimeout(run, AT_MOST_EVERY_MS / 4));
}

/** Of hundreds of trials each is a piece of news: what is said of all is asked for once in a while. */
function againSoon(key: string): void {
  if (waiting.has(key)) return;
  const run = (): void => {
    waiting.delete(key);
    cache.invalidate((each) => each === key);
  };
  waiting.set(key, setTimeout(run, AT_MOST_EVERY_MS));
}

/** Who looks at the newest trial because nobody chose stays with it; and at its step, unless following. */
function stayHere(): void {
  const state = getState();
  const { look, follow, trials } = state.page;
  const { trial, step } = shownNow("a");
  if (trial === null || step === null) return;
  const isNewestTrial = trials.length === 0 && look.trial === null;
  const isFixed = follow || look.step !== null;
  if (isFixed && !isNewestTrial) return;
  const stayed = isFixed ? look : { ...look, step };
  const page = { ...state.page, look: stayed, trials: isNewestTrial ? [trial] : trials };
  adjust({ ...state, page, recent: isFixed ? state.recent : [...state.recent, "step"] });
}

/** To be called once. */
export function goLive(): () => void {
  return listen({
    trial(news) {
      const size = `${news.steps} ${news.metrics} ${news.lastStep} ${news.closed}`;
      const before = sizes.get(news.trial);
      sizes.set(news.trial, size);
      // The first word on every trial says nothing new: it has been loaded a moment ago.
      if (before !== undefined && before !== size) refresh(news.trial);
      tell({ reachable: true, heard: Date.now() });
    },
    catalog() {
      stayHere();
      cache.invalidate((key) => key === askCatalog.key || key.startsWith("overview"));
      tell({ reachable: true, heard: Date.now() });
    },
    findings({ trial }) {
      cache.invalidate((key) => key === askFindings(trial).key);
      againSoon(askOverviewFindings.key);
    },
    overview() {
      cache.invalidate((key) => key === askOverview.key || key === askCatalog.key);
    },
    views() {
      version++;
      cache.invalidate((key) => key === askViews.key);
      tell({ reachable: true, heard: Date.now() });
    },
    reachable(is) {
      if (!is) cache.prefetch([]); // nobody would answer
      if (is && !connection.reachable) {
        stayHere();
        sizes.clear();
        cache.retry();
        cache.invalidate((key) => key === askCatalog.key || /^(grows|findings|overview)\b/.test(key));
      }
      if (is !== connection.reachable) tell({ ...connection, reachable: is });
    },
  });
}
