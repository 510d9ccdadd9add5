/** Operations by their labels; a click leads to each. */
import { useState } from "react";
import { goTo } from "./go_to";
import type { ShownTrace } from "./use_graph";

interface Props {
  readonly labels: readonly string[];
  readonly shown: ShownTrace;
  /** What to say if there are none. */
  readonly none?: string;
}

const MOST = 12;

export function Labels({ labels, shown, none = "" }: Props) {
  const [all, setAll] = useState(false);
  if (labels.length === 0) return none ? <p className="label">{none}</p> : null;
  const listed = all ? labels : labels.slice(0, MOST);
  return (
    <span className="trace-labels">
      {listed.map((label) => (
        <button key={label} type="button" className="trace-label number" onClick={() => goTo(shown, label)}>
          {label}
        </button>
      ))}
      {listed.length < labels.length && (
        <button type="button" className="trace-label" onClick={() => setAll(true)}>
          {labels.length - listed.length} more
        </button>
      )}
    </span>
  );
}
