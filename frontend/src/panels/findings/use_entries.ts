/** Findings of what is on the page, as lists, graph and scrubber show them; and the way to what shows one. */
import { useCallback, useMemo, useRef } from "react";
import type { Finding, Findings } from "../../api/types";
import { groupsAround, isTooLong } from "../../model/folding";
import { entriesOf, marksOf, spansOf, type Entry, type Marks, type Span } from "../../model/findings";
import { findings, useFindings, useFindingsOf } from "../../state/findings";
import { act, trialColor, useMainTrial, usePart, useTrials } from "../../state/page";
import { wishToSee } from "../graph/reveal";
import { useShownGraph } from "../graph/use_model";

const keptEntries = new WeakMap<Findings, readonly Entry[]>();
const keptMarks = new WeakMap<Findings, Marks>();

/** The same list for the same findings. */
function entriesIn(known: Findings | null): readonly Entry[] {
  if (!known) return NO_ENTRIES;
  const found = keptEntries.get(known) ?? entriesOf(known.findings);
  keptEntries.set(known, found);
  return found;
}
const NO_ENTRIES: readonly Entry[] = [];

export interface TrialEntries {
  readonly trial: string;
  readonly color: string;
  /** Null: not asked for yet. */
  readonly known: Findings | null;
  readonly entries: readonly Entry[];
}

export interface AllEntries {
  readonly trials: readonly TrialEntries[];
  readonly problem: string | null;
}

/** Of all trials on the page. */
export function useAllEntries(): AllEntries {
  const names = useTrials();
  const { values, problem } = useFindingsOf(names);
  return useMemo(
    () => ({
      trials: names.map((trial, i) => ({
        trial, color: trialColor(trial), known: values[i] ?? null, entries: entriesIn(values[i] ?? null),
      })),
      problem,
    }),
    [names, values, problem],
  );
}

/** Marks of the main trial. */
export function useMarks(): Marks | null {
  const known = useFindings(useMainTrial());
  if (!known) return null;
  const found = keptMarks.get(known) ?? marksOf(known.findings);
  keptMarks.set(known, found);
  return found;
}

/** When something was seen in the main trial. */
export function useSpans(): readonly Span[] {
  const entries = entriesIn(useFindings(useMainTrial()));
  const chosen = usePart((page) => page.finding);
  return useMemo(() => spansOf(entries, chosen), [entries, chosen]);
}

export type Show = (trial: string, finding: Finding) => void;

/** Leads to what shows a finding: whatever hides its node is opened, and the graph moves there. */
export function useShow(): Show {
  const { model, open } = useShownGraph();
  const latest = useRef({ model, open });
  latest.current = { model, open };
  return useCallback((trial, finding) => {
    const { model: graph, open: isOpen } = latest.current;
    const node = graph?.byName.get(finding.node);
    const around = graph && node !== undefined ? groupsAround(graph, node) : [];
    const missing = around.filter((address) => !isOpen.has(address));
    const next = [...isOpen, ...missing];
    const isLong = missing.length > 0 && isTooLong(next);
    if (isLong) act.page({ open: next }, { transient: true });
    findings.show(trial, finding, missing.length && !isLong ? { open: next } : {});
    if (node !== undefined) wishToSee(finding.node);
  }, []);
}

/** One after the other, as they are listed. */
export function inOrder(trials: readonly TrialEntries[]): { readonly trial: string; readonly finding: Finding }[] {
  return trials.flatMap(({ trial, entries }) =>
    entries.flatMap(({ finding, followers }) => [finding, ...followers].map((each) => ({ trial, finding: each }))),
  );
}
