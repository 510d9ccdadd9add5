/** Numbers of any rank as colours or as numbers: axes to choose, exact values to point at and to copy. */
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Heatmap, type CellHit } from "../../draw/heatmap";
import { NumberGrid } from "../../draw/number_grid";
import type { Cell } from "../../draw/grid_cells";
import { shadeTable, type ShadeTable } from "../../draw/shades";
import { divergingScale, linearScale, SHADE_INF, SHADE_NAN, type HeatScale } from "../../model/heat";
import { exactFloat32, shortNumber, wholeNumber } from "../../model/numbers";
import { withColumns } from "../../model/ordering";
import { indexOf, sliceExtent, sliceOf, valueAt, type Slice, type SliceChoice } from "../../model/slices";
import { NumberText } from "../../ui/number";
import { Button } from "../../ui/parts";
import { useCanvas } from "../../ui/use_canvas";
import { SliceControls } from "./slices_controls";
import { useTheme } from "./use_theme";

export interface ValuesProps {
  readonly label: string;
  readonly data: Float32Array;
  readonly shape: readonly number[];
  readonly names: readonly string[];
  readonly choice: SliceChoice;
  readonly onChoice: (choice: SliceChoice, transient: boolean) => void;
  readonly placeName?: (axis: number, place: number) => string;
  readonly show: "map" | "numbers";
  /** Columns in this order; null: as they are. */
  readonly order?: Int32Array | null;
  /** Place on the axis of rows to frame. -1: none. */
  readonly marked?: number;
  /** Around zero, whatever the values: differences and scores. */
  readonly diverging?: boolean;
  readonly height?: number;
}

const ROW = 22; // the tallest row of a heat map
const SMALL = 400; // cells that need no magnifying

export function Values(props: ValuesProps) {
  const { label, data, shape, names, choice, onChoice, show, order = null, diverging = false, height = 200 } = props;
  const placeName = props.placeName ?? plainName;
  const theme = useTheme();
  // One scale for the whole tensor: moving through its slices must not change what a colour means.
  const { scale, nans, infs } = useMemo(() => scaleOf(data, diverging), [data, diverging]);
  const table = shadeTable(scale.kind, theme.scheme, theme.panelRgb);
  const slice = useMemo(() => {
    const plain = sliceOf(data, shape, choice);
    return order && order.length === plain.columns ? withColumns(plain, order) : plain;
  }, [data, shape, choice, order]);
  const [pointed, setPointed] = useState<Cell | null>(null);
  if (data.length === 0) return <p className="label">It has no elements.</p>;
  if (data.length === 1) return <NumberText value={data[0]} text={exactFloat32(data[0])} />;
  const columnOf = (column: number): number => (order && order.length === slice.columns ? order[column] : column);
  const parts: PartProps = {
    label, slice, scale, nans, infs, table, height,
    readout: <Readout {...{ slice, choice, placeName, columnOf }} cell={pointed} />,
    marked: props.marked ?? -1,
    onPoint: setPointed,
    rowName: (row) => (choice.rows < 0 ? "" : placeName(choice.rows, row)),
    columnName: (column) => placeName(choice.columns, columnOf(column)),
  };
  return (
    <div className="values">
      <SliceControls shape={shape} names={names} choice={choice} onChoice={onChoice} placeName={placeName} />
      {show === "map" ? <MapPart {...parts} /> : <NumbersPart {...parts} />}
    </div>
  );
}

const plainName = (_axis: number, place: number): string => String(place);

/** Numbers on both sides of zero get a scale around zero; others one from end to end. */
export function scaleOf(data: Float32Array, diverging: boolean) {
  const all: Slice = { data, rows: 1, columns: data.length, offset: 0, rowStride: 0, columnStride: 1 };
  const { low, high, nans, infs } = sliceExtent(all);
  return { scale: scaleBetween(low, high, diverging), nans, infs };
}

function scaleBetween(low: number, high: number, diverging: boolean): HeatScale {
  if (high < low) return linearScale(0, 1);
  if (diverging || (low < 0 && high > 0)) return divergingScale(Math.max(-low, high) || 1);
  if (low === high) return linearScale(Math.min(0, low), Math.max(0, high) || 1);
  // From zero, if zero is not far: how dark a colour is should then say how small a number is.
  if (low >= 0 && low < high / 2) return linearScale(0, high);
  return linearScale(low, high);
}

interface PartProps {
  readonly label: string;
  readonly slice: Slice;
  readonly scale: HeatScale;
  /** In the whole tensor. */
  readonly nans: number;
  readonly infs: number;
  readonly table: ShadeTable;
  readonly height: number;
  readonly marked: number;
  readonly readout: ReactNode;
  readonly onPoint: (cell: Cell | null) => void;
  readonly rowName: (row: number) => string;
  readonly columnName: (column: number) => string;
}

function MapPart(props: PartProps) {
  const { label, slice, scale, table, height, marked, readout, onPoint } = props;
  const theme = useTheme();
  const [canvas, picture] = useCanvas((element) => new Heatmap(element, onPoint as (hit: CellHit | null) => void));
  useEffect(() => {
    picture.current?.set({ slice, scale, table, theme, markedRow: marked });
  }, [picture, slice, scale, table, theme, marked]);
  const size = `${wholeNumber(slice.rows)} rows, ${wholeNumber(slice.columns)} columns`;
  return (
    <>
      <canvas
        ref={canvas}
        className="canvas values-map"
        tabIndex={0}
        role="application"
        aria-label={`${label}: ${size}. Arrow keys move from value to value, plus and minus zoom.`}
        title="Drag to scroll, Ctrl + wheel to zoom, double-click to see all"
        style={{ height: Math.min(height, Math.max(1, slice.rows) * ROW) }}
      />
      <div className="values-foot">
        <ScaleBar {...props} />
        {readout}
        {slice.columns * slice.rows > SMALL && (
          <span className="zoom-buttons">
            <Button plain label="Zoom out" onClick={() => picture.current?.zoom(1.6)}>−</Button>
            <Button plain label="fit all values" onClick={() => picture.current?.fit()}>fit</Button>
            <Button plain label="Zoom in" onClick={() => picture.current?.zoom(0.6)}>+</Button>
          </span>
        )}
      </div>
    </>
  );
}

function NumbersPart({ label, slice, height, readout, onPoint, rowName, columnName }: PartProps) {
  const theme = useTheme();
  const scroller = useRef<HTMLDivElement>(null);
  const grid = useRef<NumberGrid>(null);
  useEffect(() => {
    const made = new NumberGrid(scroller.current as HTMLDivElement, onPoint);
    grid.current = made;
    return () => made.close();
  }, [onPoint]);
  useEffect(() => {
    grid.current?.set({ slice, theme, tint: null, rowName, columnName });
  });
  const fitting = 21 * (slice.rows + 1) + 18; // head, rows, and a bar to scroll with
  return (
    <>
      <div
        ref={scroller}
        className="number-grid"
        tabIndex={0}
        role="application"
        aria-label={`${label} as numbers. Arrow keys move, shift selects, Ctrl + C copies.`}
        style={{ height: Math.min(height, fitting) }}
      />
      <div className="values-foot">{readout}</div>
    </>
  );
}

interface ReadoutProps {
  readonly slice: Slice;
  readonly choice: SliceChoice;
  readonly cell: Cell | null;
  readonly placeName: (axis: number, place: number) => string;
  readonly columnOf: (column: number) => number;
}

/** The value is looked up when it is shown: it follows the step while the pointer rests. */
function Readout({ slice, choice, cell, placeName, columnOf }: ReadoutProps) {
  const value = cell ? valueAt(slice, cell.row, cell.column) : undefined;
  const index = cell && value !== undefined ? indexOf(choice, cell.row, columnOf(cell.column)) : [];
  const place = index.map((at, axis) => placeName(axis, at)).join(", ");
  return (
    <span className="number values-readout" role="status">
      {value !== undefined && `[${place}] ${exactFloat32(value)}`}
    </span>
  );
}

/** What colours mean; those of NaN and infinity only where there are some. */
function ScaleBar({ scale, table, nans, infs }: Pick<PartProps, "scale" | "table" | "nans" | "infs">) {
  const stops = Array.from({ length: 17 }, (_, i) => table.fill[Math.min(255, i * 16)]).join(", ");
  return (
    <span className="scale-bar">
      <span className="number">{shortNumber(scale.low, 2)}</span>
      <span className="scale-colors" style={{ background: `linear-gradient(to right, ${stops})` }} />
      <span className="number">{shortNumber(scale.high, 2)}</span>
      {nans > 0 && <Odd color={table.fill[SHADE_NAN]} text={`${wholeNumber(nans)} NaN`} />}
      {infs > 0 && <Odd color={table.fill[SHADE_INF]} text={`${wholeNumber(infs)} ∞`} />}
    </span>
  );
}

const Odd = ({ color, text }: { readonly color: string; readonly text: string }) => (
  <span className="number odd"><i style={{ background: color }} /> {text}</span>
);
