/** The graph as a tree of elements: invisible, but there for screen readers and for tests. */
import type { GraphState } from "../../draw/graph_state";
import { selectionSentence, twinItems } from "../../draw/twin";

interface Props {
  readonly state: GraphState | null;
  readonly onSelect: (item: number) => void;
  readonly onFold: (item: number) => void;
}

export function GraphTwin({ state, onSelect, onFold }: Props) {
  if (!state) return null;
  return (
    <div className="visually-hidden">
      <p role="status">{selectionSentence(state)}</p>
      <ul role="tree" aria-label="Boxes of the dependency graph">
        {twinItems(state).map((entry) => (
          <li
            key={entry.key}
            role="treeitem"
            aria-level={entry.level}
            aria-expanded={entry.expanded ?? undefined}
            aria-selected={entry.selected}
            data-key={entry.key}
            onClick={() => (entry.expanded ? onFold(entry.item) : onSelect(entry.item))}
          >
            {entry.label}
          </li>
        ))}
      </ul>
    </div>
  );
}
