/** Arithmetic of the number grid: which cells are in view, what a selection copies. Pure. */
import { exactFloat32 } from "../model/numbers";
import { valueAt, type Slice } from "../model/slices";

export const CELL_WIDTH = 74;
export const CELL_HEIGHT = 21;
export const HEAD_WIDTH = 52;
export const HEAD_HEIGHT = 21;

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** Corners in any order. */
export interface CellRange {
  readonly from: Cell;
  readonly to: Cell;
}

export interface CellBlock {
  readonly top: number;
  readonly left: number;
  /** Exclusive. */
  readonly bottom: number;
  readonly right: number;
}

export function blockOf({ from, to }: CellRange): CellBlock {
  return {
    top: Math.min(from.row, to.row),
    left: Math.min(from.column, to.column),
    bottom: Math.max(from.row, to.row) + 1,
    right: Math.max(from.column, to.column) + 1,
  };
}

export function cellsInView(
  slice: Slice,
  scrollLeft: number,
  scrollTop: number,
  width: number,
  height: number,
): CellBlock {
  return {
    top: Math.max(0, Math.floor(scrollTop / CELL_HEIGHT)),
    left: Math.max(0, Math.floor(scrollLeft / CELL_WIDTH)),
    bottom: Math.min(slice.rows, Math.ceil((scrollTop + height - HEAD_HEIGHT) / CELL_HEIGHT)),
    right: Math.min(slice.columns, Math.ceil((scrollLeft + width - HEAD_WIDTH) / CELL_WIDTH)),
  };
}

/** The cell below a point of the visible part; null on the heads and outside. */
export function cellAtPoint(slice: Slice, scrollLeft: number, scrollTop: number, x: number, y: number): Cell | null {
  if (x < HEAD_WIDTH || y < HEAD_HEIGHT) return null;
  const row = Math.floor((y - HEAD_HEIGHT + scrollTop) / CELL_HEIGHT);
  const column = Math.floor((x - HEAD_WIDTH + scrollLeft) / CELL_WIDTH);
  return row < slice.rows && column < slice.columns ? { row, column } : null;
}

/** Tabs and line ends, every digit: what spreadsheets and numpy.loadtxt read. */
export function copyText(slice: Slice, range: CellRange): string {
  const { top, left, bottom, right } = blockOf(range);
  const lines: string[] = [];
  for (let row = top; row < bottom; row++) {
    const line: string[] = [];
    for (let column = left; column < right; column++) line.push(exactFloat32(valueAt(slice, row, column) ?? NaN));
    lines.push(line.join("\t"));
  }
  return lines.join("\n");
}

/** Where a key leads; null if the key is not one of movement. */
export function moveCell(slice: Slice, cell: Cell, key: string, page: number): Cell | null {
  const moves: Record<string, [number, number]> = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-page, 0], PageDown: [page, 0], Home: [0, -Infinity], End: [0, Infinity],
  };
  const move = moves[key];
  if (!move) return null;
  const within = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));
  return { row: within(cell.row + move[0], slice.rows), column: within(cell.column + move[1], slice.columns) };
}
