/** Names, cells and numbers of layers × steps: one tab stop, walked with arrow keys. Only rows in view are made. */
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import type { Finding } from "../../api/types";
import { LayersHeat } from "../../draw/layers_heat";
import { LayersMarks, type HeatMark } from "../../draw/layers_marks";
import { columnAt, type StepAxis } from "../../model/layers/axis";
import { VALUE, type Cells, type Line } from "../../model/layers/derive";
import { cellText, type LayerScale } from "../../model/layers/scale";
import type { LayerRow } from "../../model/layers/tree";
import { act } from "../../state/page";
import { revealRow, useRowWindow } from "../../ui/rows";
import { Tooltip } from "../../ui/tooltip";
import { useCanvas } from "../../ui/use_canvas";
import { Mark } from "../findings/mark";
import { sameNumber } from "./curve";
import { CellTip } from "./tip";
import type { LayersData } from "./use_layers";

export interface HeatRows {
  readonly rows: readonly LayerRow[];
  readonly open: ReadonlySet<string>;
  readonly lines: (row: LayerRow) => Line | null;
  /** Whose number a cell shows; -1: nobody's. */
  readonly behind: (row: LayerRow, column: number) => number;
  readonly axis: StepAxis;
  readonly column: number;
  readonly node: string | null;
  readonly nameWidth: number;
  readonly rowHeight: number;
  readonly width: number;
  readonly roots: readonly Finding[];
  readonly last: number | null;
  readonly cells: Cells;
  readonly words: (finding: Finding) => string;
  readonly fold: (row: LayerRow) => void;
  readonly way: (node: string) => readonly string[];
}

interface Props {
  readonly data: LayersData;
  readonly rows: HeatRows;
}

export function Heat({ data, rows: view }: Props) {
  const { rows, rowHeight, axis, column, node, lines } = view;
  const scroller = useRef<HTMLDivElement>(null);
  const [heat, heatPaint] = useCanvas((element) => new LayersHeat(element));
  const [overlay, marksPaint] = useCanvas((element) => new LayersMarks(element));
  const [hover, setHover] = useState<{ x: number; y: number; row: number; column: number } | null>(null);
  const marks = useMemo(() => marksOf(view), [view.roots, rows]);
  const selected = rows.findIndex((row) => row.node === node && (row.record >= 0 || row.inner.length > 0));
  const selectedRow = selected >= 0 ? selected : rowAround(view, node);
  useEffect(() => {
    heatPaint.current?.set({
      rows: rows.length, rowHeight, scale: data.scale, axis, line: (row) => lines(rows[row]),
    });
  }, [rows, rowHeight, data.scale, axis, lines, heatPaint]);
  useEffect(() => {
    marksPaint.current?.set({ axis, rowHeight, rows: rows.length, marks, column, selected: selectedRow });
  }, [axis, rowHeight, rows, marks, column, selectedRow, marksPaint]);
  useEffect(() => {
    if (scroller.current && selectedRow >= 0) revealRow(scroller.current, selectedRow, rowHeight);
  }, [selectedRow, rowHeight]);
  const scrolled = (): void => {
    const top = scroller.current?.scrollTop ?? 0;
    heatPaint.current?.scroll(top);
    marksPaint.current?.scroll(top);
  };
  const window = useRowWindow(scroller, rows.length, rowHeight);

  const hit = (event: PointerEvent): { row: number; column: number; isCell: boolean } | null => {
    const box = (scroller.current as HTMLDivElement).getBoundingClientRect();
    const x = event.clientX - box.left - view.nameWidth;
    const y = event.clientY - box.top + (scroller.current?.scrollTop ?? 0);
    const row = Math.floor(y / rowHeight);
    if (row < 0 || row >= rows.length) return null;
    return { row, column: columnAt(axis, x), isCell: x >= 0 && x <= axis.width };
  };
  const press = (event: PointerEvent): void => {
    const found = hit(event);
    if (!found || event.button !== 0 || (event.target as Element).closest("button")) return;
    choose(data, rows[found.row], found.isCell ? found.column : null, view);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by !== undefined) {
      const next = nextRow(rows, selectedRow, by);
      if (next) choose(data, next, null, view);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      act.stepBy(event.key === "ArrowLeft" ? -1 : 1, false);
    } else if (event.key === "Enter") act.page({ tab: "graph" });
    else if (event.key === " ") {
      const around = rows[selectedRow]?.inner.length ? rows[selectedRow] : rows[rowAround(view, node, true)];
      if (around) view.fold(around);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const line = rows[selectedRow] ? lines(rows[selectedRow]) : null;
  const said = line && column >= 0 ? cellText(line.values[column], line.states[column], data.scale) : "";
  return (
    <div
      className="layers-heat"
      ref={scroller}
      tabIndex={0}
      role="application"
      aria-label="Layers by steps. Arrow keys move the selection, space folds, enter opens the graph."
      onScroll={scrolled}
      onKeyDown={keys}
      onPointerUp={press}
      onPointerMove={(event) => {
        const found = hit(event);
        setHover(found?.isCell ? { x: event.clientX, y: event.clientY, row: found.row, column: found.column } : null);
      }}
      onPointerLeave={() => setHover(null)}
    >
      <div className="layers-canvases">
        <canvas
          ref={heat} className="layers-cells" aria-hidden="true"
          style={{ left: view.nameWidth, width: axis.width }}
        />
        <canvas
          ref={overlay} className="layers-cells" aria-hidden="true"
          style={{ left: view.nameWidth, width: axis.width }}
        />
      </div>
      <div className="layers-rows" style={{ height: rows.length * rowHeight + 4 }}>
        {rows.slice(window.first, window.end).map((row, i) => (
          <Name
            key={row.key} row={row} top={(window.first + i) * rowHeight} height={rowHeight} width={view.nameWidth}
            isSelected={window.first + i === selectedRow} isOpen={view.open.has(row.key)} fold={view.fold}
            severity={marks.find((mark) => mark.row === window.first + i)?.severity ?? null}
          />
        ))}
        {rows.slice(window.first, window.end).map((row, i) => (
          <Value
            key={row.key} line={lines(row)} column={column} scale={data.scale} top={(window.first + i) * rowHeight}
            height={rowHeight} isSelected={window.first + i === selectedRow}
          />
        ))}
      </div>
      <p className="visually-hidden" role="status">
        Layers, {data.trial}, {node}, step {data.steps[column]?.number}: {said}
      </p>
      <Tooltip at={hover}>
        {hover && rows[hover.row] && (
          <CellTip
            data={data} row={rows[hover.row]} record={view.behind(rows[hover.row], hover.column)} column={hover.column}
          />
        )}
      </Tooltip>
    </div>
  );
}

/** A cell leads to the layer whose number it shows, also out of a folded row; a name to that row itself. */
function choose(data: LayersData, row: LayerRow, column: number | null, view: HeatRows): void {
  const step = column === null ? null : data.steps[column];
  const at = step && column !== null
    ? { step: step.number, stepType: sameNumber(data.steps, column) ? step.type : null } : {};
  const isGroup = row.record < 0;
  if (isGroup && row.inner.length && !step) return view.fold(row);
  const table = data.table;
  const record = column === null ? row.record : view.behind(row, column);
  const place = record >= 0 && table
    ? { node: table.node[record], role: table.role[record], pass: table.pass[record] } : { node: row.node };
  act.choose({ ...place, ...at });
}

function nextRow(rows: readonly LayerRow[], from: number, by: number): LayerRow | null {
  let place = Math.min(rows.length - 1, Math.max(0, from + by));
  while (rows[place] && rows[place].record < 0 && rows[place + Math.sign(by)]) place += Math.sign(by);
  return rows[place] ?? null;
}

/** The row that a node is folded into; -1 if there is none. */
function rowAround({ rows, way }: HeatRows, node: string | null, isOpen = false): number {
  if (node === null) return -1;
  const keys = [...way(node)].reverse();
  const found = keys.map((key) => rows.findIndex((row) => row.key === key)).find((place) => place >= 0);
  return found ?? (isOpen ? -1 : -1);
}

/** Findings on the rows of their layers, or on what these are folded into. */
function marksOf(view: HeatRows): HeatMark[] {
  return view.roots.flatMap((finding) => {
    const own = view.rows.findIndex((row) => row.node === finding.node);
    const row = own >= 0 ? own : rowAround(view, finding.node);
    const { firstStep, lastStep, severity } = finding;
    return row < 0 ? [] : [{ row, from: firstStep, to: lastStep, severity, words: view.words(finding) }];
  });
}

interface NameProps {
  readonly row: LayerRow;
  readonly top: number;
  readonly height: number;
  readonly width: number;
  readonly isSelected: boolean;
  readonly isOpen: boolean;
  readonly severity: HeatMark["severity"] | null;
  readonly fold: (row: LayerRow) => void;
}

const Name = memo(function Name({ row, top, height, width, isSelected, isOpen, severity, fold }: NameProps) {
  const style = { top, height, width, paddingLeft: 6 + row.depth * 14 };
  return (
    <div className={isSelected ? "layers-name selected" : "layers-name"} style={style} title={row.node}>
      {row.inner.length > 0 ? (
        <button
          type="button" tabIndex={-1} aria-label={`${isOpen ? "Fold" : "Open"} ${row.node}`}
          onClick={() => fold(row)}
        >
          {isOpen ? "▾" : "▸"}
        </button>
      ) : <i />}
      <span className={row.inner.length ? "group" : ""}>{row.label}</span>
      <small>{row.type}</small>
      {severity && <Mark severity={severity} />}
    </div>
  );
}, (a, b) => a.row === b.row && a.top === b.top && a.height === b.height && a.width === b.width
  && a.isSelected === b.isSelected && a.isOpen === b.isOpen && a.severity === b.severity && a.fold === b.fold);

interface ValueProps {
  readonly line: Line | null;
  readonly column: number;
  readonly scale: LayerScale;
  readonly top: number;
  readonly height: number;
  readonly isSelected: boolean;
}

const Value = memo(function Value({ line, column, scale, top, height, isSelected }: ValueProps) {
  if (!line || column < 0) return null;
  const [value, state] = [line.values[column], line.states[column]];
  const isQuiet = state !== VALUE || (value === 0 && scale.what !== "number");
  const look = ["layers-value number", isSelected && "selected", isQuiet && "quiet"].filter(Boolean).join(" ");
  return <div className={look} style={{ top, height }}>{cellText(value, state, scale)}</div>;
});
