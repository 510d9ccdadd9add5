/** Finds operations by a pattern, the language of `trace.graph.select`; without a sign of it, by a part of a label. */
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { reach } from "../../state/keys";
import { act, usePart } from "../../state/page";
import { Key } from "../../ui/parts";

const HINT =
  "A label, type:relu, in:encoder.2 or kind:input, joined by &, |, ! and child_of(…). Enter searches, Esc ends it.";

export function PatternSearch() {
  const pattern = usePart((page) => page.trace.pattern);
  const [text, setText] = useState(pattern);
  useEffect(() => setText(pattern), [pattern]);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    reach.search = () => {
      input.current?.focus();
      input.current?.select();
    };
    return () => void delete reach.search;
  }, []);
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "Enter") act.page({ trace: { pattern: text.trim() }, side: "findings" });
    else if (event.key === "Escape") act.trace({ pattern: "" });
    else return;
    if (event.key === "Escape") setText("");
    event.preventDefault();
  };
  return (
    <span className="search" role="search">
      <input
        ref={input}
        className="text-input trace-pattern"
        type="text"
        aria-label="Select operations by a pattern"
        placeholder="type:relu & in:encoder"
        title={HINT}
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={keys}
      />
      <Key>/</Key>
    </span>
  );
}
