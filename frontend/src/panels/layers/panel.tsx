/** Layers × steps: which layer, since when. */
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { columnsOf, stepAxis } from "../../model/layers/axis";
import type { Line } from "../../model/layers/derive";
import { worstAt, worstLine } from "../../model/layers/scale";
import { filteredRows, flatten, openByItself, visibleRows, wayTo, type LayerRow } from "../../model/layers/tree";
import { entriesOf, timeWords } from "../../model/findings";
import { useFindings } from "../../state/findings";
import { act, usePart, useShownPart } from "../../state/page";
import { Empty } from "../../ui/parts";
import { Controls } from "./controls";
import { Curve } from "./curve";
import { Heat, type HeatRows } from "./heat";
import { Legend } from "./legend";
import "./layers.css";
import { NothingHere } from "./nothing";
import { Side } from "./side";
import { useLayersData, type LayersData } from "./use_layers";

const ROW_LEAST = 13;
const ROW_MOST = 24;
export const VALUE_WIDTH = 78;

export function Panel() {
  const data = useLayersData();
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => setSize((before) => {
      const { clientWidth: width, clientHeight: height } = element;
      return before.width === width && before.height === height ? before : { width, height };
    });
    measure(); // at once: the first picture must not wait for another frame
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div className="layers" role="region" aria-label="Layers">
      <div className="layers-main">
        <Controls data={data} />
        <div className="layers-box" ref={box}>
          {size.width > 0 && <Body data={data} width={size.width} height={size.height} />}
        </div>
      </div>
      <Side data={data} />
    </div>
  );
}

interface BodyProps {
  readonly data: LayersData;
  readonly width: number;
  readonly height: number;
}

function Body({ data, width, height }: BodyProps) {
  const { described, table, problem, cells, steps } = data;
  const view = useView(data, width, height);
  if (described && described.tensors === 0) return <NothingHere kind="watch" />;
  if (problem) return <Empty>{problem}</Empty>;
  if (!table) return null;
  if (cells.rows === 0 || steps.length === 0) return <NothingHere kind={data.of} />;
  return (
    <>
      <Curve data={data} axis={view.axis} left={view.nameWidth} column={view.column} findings={view.roots} />
      <Heat data={data} rows={view} />
      <Legend data={data} />
    </>
  );
}

/** Everything that the picture depends on beside the numbers. */
function useView(data: LayersData, width: number, height: number): HeatRows {
  const { trial, rows, cells, steps, derived, reference, scale } = data;
  const layers = usePart((page) => page.layers);
  const node = useShownPart("a", (shown) => shown.node);
  const step = useShownPart("a", (shown) => shown.step);
  const ordinal = useShownPart("a", (shown) => shown.ordinal);
  const chosen = usePart((page) => page.finding);
  const known = useFindings(trial);
  const roots = useMemo(
    () => (known ? entriesOf(known.findings).map(({ finding }) => finding) : [])
      .filter(({ severity, node: at, id }) => at !== "" && (severity !== "info" || id === chosen)),
    [known, chosen],
  );
  const nameWidth = width < 620 ? 150 : width > 1200 ? 250 : 208;
  const most = Math.floor(Math.max(380, height - 130) / ROW_LEAST);
  const wanted = useMemo(() => [...roots.map((finding) => finding.node), ...(node ? [node] : [])], [roots, node]);
  const byItself = useStable(useMemo(() => openByItself(rows, most, wanted), [rows, most, wanted]));
  const open = useMemo(
    () => (layers.open === null ? byItself : new Set(layers.open)), [layers.open, byItself],
  );
  const derivedNow = derived(reference);
  const shown = useMemo(() => {
    const found = layers.filter ? filteredRows(rows, layers.filter) : visibleRows(rows, open);
    if (layers.order === "network") return found;
    const leaves = flatten(rows).filter((row) => row.record >= 0 && (!layers.filter || found.includes(row)));
    return sortedByReach(leaves, (record) => derivedNow.line(record), scale.kind === "diverging");
  }, [rows, open, layers.filter, layers.order, derivedNow, scale]);
  const axis = useMemo(() => {
    const numbers = Float64Array.from(steps, ({ number }) => number);
    return stepAxis(numbers, Math.max(numbers[numbers.length - 1] ?? 0), width - nameWidth - VALUE_WIDTH,
      layers.columns === "equal");
  }, [steps, width, nameWidth, layers.columns]);
  const { lines, behind } = useMemo(() => {
    const made = new Map<string, Line>();
    const inside = (row: LayerRow): Line[] => row.members.map((member) => derivedNow.line(member));
    const isWorst = (row: LayerRow): boolean => {
      const isFolded = row.inner.length > 0 && !open.has(row.key) && !layers.filter && layers.order === "network";
      return isFolded && (reference !== "absolute" || row.record < 0);
    };
    return {
      lines: (row: LayerRow): Line | null => {
        if (!isWorst(row)) return row.record < 0 ? null : derivedNow.line(row.record);
        const found = made.get(row.key) ?? worstLine(inside(row), scale);
        made.set(row.key, found);
        return found;
      },
      behind: (row: LayerRow, column: number): number =>
        isWorst(row) ? row.members[worstAt(inside(row), column, scale)] ?? -1 : row.record,
    };
  }, [derivedNow, scale, open, reference, layers.filter, layers.order]);
  const column = useMemo(() => {
    const exact = steps.findIndex((each) => each.ordinal === ordinal);
    return exact >= 0 ? exact : step === null || steps.length === 0 ? -1 : columnsOf(axis, step, step)[0];
  }, [steps, ordinal, step, axis]);
  const rowHeight = Math.max(ROW_LEAST, Math.min(ROW_MOST, Math.floor((height - 130) / Math.max(1, shown.length))));
  return {
    rows: shown, open, lines, behind, axis, column, node, nameWidth, rowHeight, roots, width,
    last: known?.lastStep ?? null, cells,
    words: (finding) => `${finding.title} ${timeWords(finding, known?.lastStep ?? null)}`,
    fold: (row) => fold(row, open), way: (at) => wayTo(rows, at),
  };
}

function fold(row: LayerRow, open: ReadonlySet<string>): void {
  const next = new Set(open);
  if (!next.delete(row.key)) next.add(row.key);
  act.page({ layers: { open: [...next] } });
}

/** Those that stand out most come first; the newest steps count. */
function sortedByReach(
  rows: readonly LayerRow[], lineOf: (record: number) => { values: Float32Array; states: Uint8Array }, isRatio: boolean,
): LayerRow[] {
  const reach = (row: LayerRow): number => {
    const { values, states } = lineOf(row.record);
    let most = -Infinity;
    for (let i = 0; i < values.length; i++) {
      if (states[i] === 2) return 1e9;
      if (states[i] === 3) return 1e8;
      if (states[i] === 1) most = Math.max(most, isRatio ? Math.abs(values[i]) : values[i]);
    }
    return most;
  };
  return rows.map((row) => [row, reach(row)] as const).sort((a, b) => b[1] - a[1]).map(([row]) => row);
}

/** The same set while its members are the same. */
function useStable(set: ReadonlySet<string>): ReadonlySet<string> {
  const kept = useRef(set);
  const key = [...set].join("\n");
  if ([...kept.current].join("\n") !== key) kept.current = set;
  return kept.current;
}
