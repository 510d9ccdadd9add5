/** How much deserves attention, as a number beside the word; and the keys that go from one finding to the next. */
import { useEffect, useRef } from "react";
import { countOf, countWords } from "../../model/findings";
import { reach } from "../../state/keys";
import { getFinding } from "../../state/findings";
import { inOrder, useAllEntries, useShow } from "./use_entries";
import "./findings.css";

export function FindingsCount() {
  const { trials } = useAllEntries();
  const count = countOf(trials.flatMap(({ entries }) => entries));
  const number = count.errors + count.warnings;
  if (number === 0) return null;
  return (
    <>
      <em className={`findings-count ${count.errors ? "error" : "warning"}`} aria-hidden="true">{number}</em>
      <span className="visually-hidden"> {countWords(count)}</span>
    </>
  );
}

/** Renders nothing. To be there once. */
export function FindingKeys() {
  const { trials } = useAllEntries();
  const show = useShow();
  const latest = useRef(trials);
  latest.current = trials;
  useEffect(() => {
    reach.finding = (by) => {
      const all = inOrder(latest.current);
      if (all.length === 0) return;
      const { trial, id } = getFinding();
      const at = all.findIndex((each) => each.trial === trial && each.finding.id === id);
      const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length;
      show(all[next].trial, all[next].finding);
    };
    return () => void delete reach.finding;
  }, [show]);
  return null;
}
