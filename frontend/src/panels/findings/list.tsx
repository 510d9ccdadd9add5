/** What looks wrong in the trials on the page, the most important first; or a sentence why there is nothing. */
import { useRef, type KeyboardEvent } from "react";
import { nothingWords } from "../../model/findings";
import { wholeNumber } from "../../model/numbers";
import { useMainTrial, usePart } from "../../state/page";
import { Empty } from "../../ui/parts";
import { EntryItem } from "./entry";
import "./findings.css";
import { SilencedList } from "./silenced";
import { useAllEntries, useShow, type TrialEntries } from "./use_entries";

/** `leads`: a click on an entry also leads to what shows it. */
export function FindingsList({ leads }: { readonly leads: boolean }) {
  const { trials, problem } = useAllEntries();
  const box = useRef<HTMLDivElement>(null);
  if (problem) return <Empty>{problem}</Empty>;
  return (
    <div ref={box} className="findings" onKeyDown={(event) => walk(event, box.current)}>
      {trials.map((one) => <TrialFindings key={one.trial} one={one} named={trials.length > 1} leads={leads} />)}
    </div>
  );
}

interface TrialProps {
  readonly one: TrialEntries;
  /** Several trials: each list says whose it is. */
  readonly named: boolean;
  readonly leads: boolean;
}

function TrialFindings({ one, named, leads }: TrialProps) {
  const { trial, color, known, entries } = one;
  const main = useMainTrial();
  const finding = usePart((page) => page.finding);
  const show = useShow();
  const chosen = trial === main ? finding : null;
  return (
    <section aria-label={named ? `Findings of ${trial}` : "Findings"}>
      {named && <h2 className="findings-trial"><i className="dot" style={{ background: color }} />{trial}</h2>}
      {!known?.checked ? (
        <Checking />
      ) : entries.length === 0 ? (
        <Empty>{nothingWords(known)}</Empty>
      ) : (
        <ol>
          {entries.map((entry) => (
            <EntryItem key={entry.finding.id} {...{ trial, entry, chosen, show, leads }} last={known.lastStep} />
          ))}
        </ol>
      )}
      {known && <SilencedList trial={trial} silenced={known.silenced} />}
      {known?.checked && entries.length > 0 && <Foot one={one} />}
    </section>
  );
}

/** Says so only if it takes long enough to wonder: see the style sheet. */
const Checking = () => (
  <Empty>
    <span className="later">Checking the recording …</span>
  </Empty>
);

/** How much was looked at, and what all this is worth. */
function Foot({ one: { known } }: { readonly one: TrialEntries }) {
  if (!known) return null;
  const { checks, steps, checking, problem } = known;
  const words = `${checks} checks over ${wholeNumber(steps)} recorded ${steps === 1 ? "step" : "steps"}`;
  return (
    <p className="findings-foot" role="status">
      {problem ?? words}
      {checking && " · checking what is new …"}
      <small>A finding is a hint with evidence, not a verdict.</small>
    </p>
  );
}

/** Arrows go from entry to entry. */
function walk(event: KeyboardEvent, box: HTMLElement | null): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !box || event.ctrlKey || event.metaKey || event.altKey) return;
  const heads = [...box.querySelectorAll<HTMLElement>("h3 > button")];
  const at = heads.indexOf(document.activeElement as HTMLElement);
  heads[Math.min(Math.max(at + by, 0), heads.length - 1)]?.focus();
  event.preventDefault();
}
