/** The graph as a tree of elements: invisible, but there for screen readers and for tests. */
import { memo, useMemo } from "react";
import type { GraphState } from "../../draw/graph_state";
import { selectionSentence, twinItems } from "../../draw/twin";

interface Props {
  readonly state: GraphState | null;
  readonly onSelect: (item: number) => void;
  readonly onFold: (item: number) => void;
}

export const GraphTwin = memo(function GraphTwin({ state, onSelect, onFold }: Props) {
  const items = useMemo(() => (state ? twinItems(state) : []), [state]);
  if (!state) return null;
  return (
    <div className="visually-hidden">
      <p role="status">{selectionSentence(state)}</p>
      <ul role="tree" aria-label="Boxes of the dependency graph">
        {items.map(({ key, item, label, level, expanded, selected }) => (
          <Box key={key} {...{ name: key, item, label, level, expanded, selected, onSelect, onFold }} />
        ))}
      </ul>
    </div>
  );
});

interface BoxProps extends Omit<Props, "state"> {
  readonly name: string;
  readonly item: number;
  readonly label: string;
  readonly level: number;
  readonly expanded: boolean | null;
  readonly selected: boolean;
}

const Box = memo(function Box({ name, item, label, level, expanded, selected, onSelect, onFold }: BoxProps) {
  return (
    <li
      role="treeitem"
      aria-level={level}
      aria-expanded={expanded ?? undefined}
      aria-selected={selected}
      data-key={name}
      onClick={() => (expanded ? onFold(item) : onSelect(item))}
      // Not as text: what nobody sees would have to be measured anew with every step.
      aria-label={label}
    />
  );
});
