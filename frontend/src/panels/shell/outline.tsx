/** Left: modules and nodes as a tree. Only the rows in sight exist, so thousands are no matter. */
import { memo, useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { groupsAround, type OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { shapeText } from "../../model/names";
import { wholeNumber } from "../../model/numbers";
import { act, useShownPart } from "../../state/page";
import { Empty } from "../../ui/parts";
import { useShownGraph } from "../graph/use_model";
import { outlineRows, type OutlineRow } from "./outline_rows";
import "./outline.css";

const ROW = 24;
const EXTRA = 6; // rows beyond both ends, so that scrolling shows no gap

export function Outline() {
  const node = useShownPart("a", (shown) => shown.node);
  const { model, problem, picture, open } = useShownGraph();
  if (problem) return <Empty>{problem}</Empty>;
  if (!model || !picture) return null;
  if (model.nodes.length === 0) return <Empty>No tensor has been recorded yet.</Empty>;
  const select = (id: number): void => act.choose({ node: model.nodes[id].name });
  return <OutlineTree model={model} selected={node} firstOpen={open} onSelect={select} />;
}

interface Props {
  readonly model: GraphModel;
  readonly selected: string | null;
  /** What is open in the graph when the outline is first shown. */
  readonly firstOpen: OpenGroups;
  readonly onSelect: (node: number) => void;
}

export function OutlineTree({ model, selected, firstOpen, onSelect }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => firstOpen);
  const chosen = model.byName.get(selected ?? "") ?? -1;
  useEffect(() => {
    if (chosen < 0) return;
    const around = groupsAround(model, chosen);
    setOpen((before) => (around.every((address) => before.has(address)) ? before : new Set([...before, ...around])));
  }, [model, chosen]);
  const rows = useMemo(() => outlineRows(model, open), [model, open]);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const seen = useRef(view); // as it was last measured: asking the element itself would have all of the page laid out
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const measure = (): void => setView((seen.current = { top: element.scrollTop, height: element.clientHeight }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const at = rows.findIndex((row) => row.node === chosen && chosen >= 0);
  const [focus, setFocus] = useState(-1);
  useEffect(() => {
    if (at < 0) return;
    setFocus(at);
    scrollTo(box.current as HTMLDivElement, at, seen.current);
  }, [at]);
  const toggle = (row: OutlineRow): void => {
    const next = new Set(open);
    if (!next.delete(row.address)) next.add(row.address);
    setOpen(next);
  };
  const enter = (row: OutlineRow): void => {
    if (row.node >= 0) onSelect(row.node);
    else toggle(row);
  };
  const move = (to: number): void => {
    const next = Math.min(Math.max(to, 0), rows.length - 1);
    setFocus(next);
    scrollTo(box.current as HTMLDivElement, next, seen.current);
  };
  const keys = (event: KeyboardEvent): void => {
    const row = rows[focus];
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(focus + 1),
      ArrowUp: () => move(focus - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      ArrowRight: () => row && (row.node < 0 && !row.open ? toggle(row) : move(focus + 1)),
      ArrowLeft: () => row && (row.open ? toggle(row) : move(parentOf(rows, focus))),
      Enter: () => row && enter(row),
      " ": () => row && enter(row),
    };
    if (!(event.key in actions) || event.ctrlKey || event.metaKey || event.altKey) return;
    actions[event.key]();
    event.preventDefault();
  };
  const clicked = useRef(enter);
  clicked.current = enter;
  const click = useCallback((row: OutlineRow, place: number) => {
    setFocus(place);
    clicked.current(row);
  }, []);
  const first = Math.max(0, Math.floor(view.top / ROW) - EXTRA);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + EXTRA);
  return (
    <div
      className="outline"
      ref={box}
      role="tree"
      aria-label="Outline"
      tabIndex={0}
      aria-activedescendant={focus >= first && focus < last ? `outline-${focus}` : undefined}
      onKeyDown={keys}
    >
      <div role="presentation" style={{ height: rows.length * ROW, position: "relative" }}>
        {rows.slice(first, last).map((row, i) => (
          <Line
            key={row.key}
            row={row}
            model={model}
            place={first + i}
            isSelected={row.node >= 0 && row.node === chosen}
            isFocused={first + i === focus}
            onClick={click}
          />
        ))}
      </div>
    </div>
  );
}

interface LineProps {
  readonly row: OutlineRow;
  readonly model: GraphModel;
  readonly place: number;
  readonly isSelected: boolean;
  readonly isFocused: boolean;
  readonly onClick: (row: OutlineRow, place: number) => void;
}

const Line = memo(function Line({ row, model, place, isSelected, isFocused, onClick }: LineProps) {
  const node = row.node >= 0 ? model.nodes[row.node] : null;
  return (
    <div
      id={`outline-${place}`}
      className={`outline-row${isSelected ? " selected" : ""}${isFocused ? " focused" : ""}`}
      role="treeitem"
      aria-level={row.level + 1}
      aria-selected={isSelected}
      aria-expanded={node ? undefined : row.open}
      title={node ? node.name : row.address}
      style={{ top: place * ROW, height: ROW, paddingLeft: 10 + 12 * row.level }}
      onClick={() => onClick(row, place)}
    >
      {node ? (
        <i className="dot" style={{ background: `var(--kind-${node.kind})` }} />
      ) : (
        <i className={row.open ? "fold open" : "fold"} />
      )}
      <span className="outline-label">{row.label}</span>
      <span className="outline-aside">{node ? shapeText(node.shape) : wholeNumber(row.size)}</span>
    </div>
  );
});

function parentOf(rows: readonly OutlineRow[], place: number): number {
  for (let i = place - 1; i >= 0; i--) if (rows[i].level < (rows[place]?.level ?? 0)) return i;
  return place;
}

function scrollTo(box: HTMLDivElement, place: number, seen: { readonly top: number; readonly height: number }): void {
  const top = place * ROW;
  if (top < seen.top) box.scrollTop = top - ROW;
  else if (top + ROW > seen.top + seen.height) box.scrollTop = top + 2 * ROW - seen.height;
}
