/** What looks wrong in the trials on the page: asked for once the page rests, kept up to date, chosen, silenced. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { askFindings, askOverviewFindings, saveSilence } from "../api/requests";
import type { Finding, Findings, OverviewFindings } from "../api/types";
import { changeLook, mergePage } from "./changes";
import { partsOf } from "./codec";
import type { Look, PagePart, Shown, State } from "./look";
import { useAll, type LoadedAll } from "./many";
import { cache, useLoaded } from "./resource";
import { shownNow } from "./shown";
import { change, getState } from "./store";

const AGAIN_MS = 2000; // a news that was missed must not leave the page waiting

let hasBegun = false;
const watchers = new Set<() => void>();

/** The first picture is there. To be called once. */
export function beginFindings(): void {
  hasBegun = true;
  for (const call of [...watchers]) call();
}

const watch = (call: () => void): (() => void) => {
  watchers.add(call);
  return () => watchers.delete(call);
};

const NOTHING: readonly string[] = [];

/** Of several trials, in their order; null where nothing is known yet. */
export function useFindingsOf(trials: readonly string[]): LoadedAll<Findings> {
  const isTime = useSyncExternalStore(watch, () => hasBegun);
  const wanted = isTime ? trials : NOTHING;
  const loaded = useAll(wanted.map(askFindings));
  const waiting = wanted.filter((_, i) => loaded.values[i]?.checking).join("\n");
  useEffect(() => {
    if (!waiting) return;
    const timer = setTimeout(() => waiting.split("\n").forEach(refreshFindings), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [waiting, loaded]);
  return loaded;
}

/** Of all trials, as one list; null while nothing is known. */
export function useOverviewFindings(): OverviewFindings | null {
  const isTime = useSyncExternalStore(watch, () => hasBegun);
  const found = useLoaded(isTime ? askOverviewFindings : null);
  const isWaiting = found.value?.checking ?? false;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => cache.invalidate((key) => key === askOverviewFindings.key), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isWaiting, found]);
  return found.value;
}

export function useFindings(trial: string | null): Findings | null {
  const trials = useMemo(() => (trial === null ? NOTHING : [trial]), [trial]);
  return useFindingsOf(trials).values[0] ?? null;
}

const PATIENCE_MS = 600;

/** What is known of a trial: at once if it is there, else when it has come, or null after a moment. */
export function whenFound(trial: string): Promise<Findings | null> {
  const { key } = askFindings(trial);
  const now = (): Findings | null => cache.peek(key).value as Findings | null;
  return new Promise((done) => {
    const finish = (): void => {
      clearTimeout(timer);
      stop();
      done(now());
    };
    const stop = cache.watch(key, () => now()?.checked && finish());
    const timer = setTimeout(finish, PATIENCE_MS);
    cache.want(askFindings(trial));
    if (now()?.checked) finish();
  });
}

export function refreshFindings(trial: string): void {
  cache.invalidate((key) => key === askFindings(trial).key);
}

/**
 * The view that shows a finding: everything its link does not name is as if nobody had chosen. Its layer is the newest
 * choice, so that it is selected also where it lacks what is looked at, as a parameter lacks a gradient. Who looks at
 * the graph stays there.
 */
export function withFinding(
  state: State, finding: Finding, trial: string, shown: Shown, more: PagePart = {},
): State {
  const { look, page } = partsOf(finding.link.replace(/^#/, ""));
  const free: Partial<Look> = { type: null, sample: null, role: null, pass: null };
  const first: Partial<Look> = look.node ? { trial, node: look.node } : { trial };
  const looked = changeLook(state, { ...first, ...free, ...look, trial }, "a", shown);
  const tab = page.tab === "layers" && state.page.tab === "graph" ? { tab: "graph" as const } : {};
  return mergePage(looked, { ...page, ...tab, ...more, finding: finding.id, follow: false });
}

export const findings = {
  /** Opens its description where it is listed; null closes it. */
  open(trial: string, id: string | null): void {
    const shown = shownNow("a");
    const state = shown.trial === trial ? getState() : changeLook(getState(), { trial }, "a", shown);
    change(mergePage(state, { finding: id }), false);
  },
  /** Leads to what shows it. */
  show(trial: string, finding: Finding, more: PagePart = {}): void {
    change(withFinding(getState(), finding, trial, shownNow("a"), more), false);
  },
  /** At a node, or everywhere (null). Answers with a sentence if it failed. */
  async silence(trial: string, check: string, node: string | null, silenced: boolean): Promise<string | null> {
    try {
      await saveSilence(trial, { check, node, silenced });
      return null;
    } catch (error) {
      return String((error as Error).message);
    } finally {
      refreshFindings(trial);
    }
  },
};

/** The chosen one, outside of components. */
export const getFinding = (): { readonly trial: string | null; readonly id: string | null } => ({
  trial: shownNow("a").trial, id: getState().page.finding,
});
