/** Any two-dimensional slice as colours: fits at first, zooms and scrolls, and knows the value below the pointer. */
import type { HeatScale } from "../model/heat";
import { exactFloat32 } from "../model/numbers";
import { valueAt, type Slice } from "../model/slices";
import { moveCell, type Cell } from "./grid_cells";
import { heatmapPixels, type CellWindow } from "./heatmap_image";
import type { ShadeTable } from "./shades";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface HeatmapInput {
  readonly slice: Slice;
  readonly scale: HeatScale;
  readonly table: ShadeTable;
  readonly theme: Theme;
  /** A row to frame: the chosen sample. -1: none. */
  readonly markedRow: number;
}

export interface CellHit {
  readonly row: number;
  readonly column: number;
  readonly value: number;
  readonly x: number;
  readonly y: number;
}

const LINES_FROM = 5; // pixels a cell needs before lines between cells help more than they hide
const TALLEST = 22; // a few rows are not stretched over the whole canvas

export class Heatmap extends Surface {
  private input: HeatmapInput | null = null;
  private window: CellWindow = { row: 0, column: 0, rows: 1, columns: 1 };
  private shape = "";
  private cursor: Cell | null = null; // chosen by a click or by keys

  constructor(canvas: HTMLCanvasElement, private readonly hovered: (hit: CellHit | null) => void = () => {}) {
    super(canvas);
    this.listen();
  }

  set(input: HeatmapInput): void {
    this.input = input;
    const shape = `${input.slice.rows}×${input.slice.columns}`;
    if (shape !== this.shape) {
      this.cursor = null;
      this.fit(); // the same shape keeps its zoom while steps change
    }
    this.shape = shape;
    this.redraw();
  }

  fit(): void {
    if (!this.input) return;
    const { rows, columns } = this.input.slice;
    this.window = { row: 0, column: 0, rows, columns };
    this.redraw();
  }

  get view(): CellWindow {
    return this.window;
  }

  cellAt(x: number, y: number): CellHit | null {
    if (!this.input || y > this.drawnHeight()) return null;
    const row = Math.floor(this.window.row + (y / this.drawnHeight()) * this.window.rows);
    const column = Math.floor(this.window.column + (x / this.width) * this.window.columns);
    const value = valueAt(this.input.slice, row, column);
    return value === undefined ? null : { row, column, value, x, y };
  }

  protected draw(): void {
    if (!this.input || this.input.slice.rows === 0 || this.input.slice.columns === 0) return;
    const { slice, scale, table } = this.input;
    const most = { width: Math.ceil(this.width * devicePixelRatio), height: Math.ceil(this.height * devicePixelRatio) };
    const part = heatmapPixels(slice, scale, table.pixels, this.window, most);
    const image = new OffscreenCanvas(part.width, part.height);
    const bytes = new Uint8ClampedArray(part.image.buffer as ArrayBuffer);
    (image.getContext("2d") as OffscreenCanvasRenderingContext2D).putImageData(
      new ImageData(bytes, part.width, part.height), 0, 0,
    );
    this.context.imageSmoothingEnabled = false;
    const [x0, y0] = this.placeOf(part.columnStart, part.rowStart);
    const [x1, y1] = this.placeOf(part.columnEnd, part.rowEnd);
    this.context.drawImage(image, x0, y0, x1 - x0, y1 - y0);
    this.drawLines(part.columnStart, part.columnEnd, part.rowStart, part.rowEnd);
    this.drawMark();
    this.drawCursor();
  }

  private drawnHeight(): number {
    return Math.min(this.height, this.window.rows * TALLEST);
  }

  private placeOf(column: number, row: number): [number, number] {
    return [
      ((column - this.window.column) / this.window.columns) * this.width,
      ((row - this.window.row) / this.window.rows) * this.drawnHeight(),
    ];
  }

  private drawLines(columnStart: number, columnEnd: number, rowStart: number, rowEnd: number): void {
    if (!this.input) return;
    const { context } = this;
    const cellWidth = this.width / this.window.columns;
    const cellHeight = this.drawnHeight() / this.window.rows;
    const bottom = this.drawnHeight();
    context.fillStyle = this.input.theme.panel;
    context.globalAlpha = 0.75;
    if (cellWidth >= LINES_FROM) {
      for (let c = columnStart + 1; c < columnEnd; c++) context.fillRect(this.placeOf(c, 0)[0] - 0.5, 0, 1, bottom);
    }
    if (cellHeight >= LINES_FROM) {
      for (let r = rowStart + 1; r < rowEnd; r++) context.fillRect(0, this.placeOf(0, r)[1] - 0.5, this.width, 1);
    }
    context.globalAlpha = 1;
  }

  private drawMark(): void {
    if (!this.input || this.input.markedRow < 0) return;
    const [, top] = this.placeOf(0, this.input.markedRow);
    const [, bottom] = this.placeOf(0, this.input.markedRow + 1);
    this.context.strokeStyle = this.input.theme.accent;
    this.context.lineWidth = 1.5;
    this.context.strokeRect(0.75, top, this.width - 1.5, Math.max(2, bottom - top));
  }

  private drawCursor(): void {
    if (!this.input || !this.cursor) return;
    const [left, top] = this.placeOf(this.cursor.column, this.cursor.row);
    const [right, bottom] = this.placeOf(this.cursor.column + 1, this.cursor.row + 1);
    // Two lines, light and dark: one of them is seen on every colour.
    const [width, height] = [Math.max(4, right - left), Math.max(4, bottom - top)];
    this.context.lineWidth = 1;
    this.context.strokeStyle = this.input.theme.panel;
    this.context.strokeRect(left - 1.5, top - 1.5, width + 3, height + 3);
    this.context.strokeStyle = this.input.theme.ink;
    this.context.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
  }

  /** The cell that was chosen last, as it is now. */
  get chosen(): CellHit | null {
    return this.cursor && this.hitOf(this.cursor);
  }

  private hitOf({ row, column }: Cell): CellHit | null {
    const value = this.input ? valueAt(this.input.slice, row, column) : undefined;
    const [x, y] = this.placeOf(column + 0.5, row + 0.5);
    return value === undefined ? null : { row, column, value, x, y };
  }

  private choose(cell: Cell | null): void {
    this.cursor = cell;
    if (cell) this.reveal(cell);
    this.hovered(cell && this.hitOf(cell));
    this.redraw();
  }

  private reveal({ row, column }: Cell): void {
    const { window } = this;
    const near = (at: number, start: number, size: number): number => Math.min(at, Math.max(start, at + 1 - size));
    this.look({
      ...window,
      row: near(row, window.row, window.rows),
      column: near(column, window.column, window.columns),
    });
  }

  private key(event: KeyboardEvent): void {
    if (!this.input || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.window.rows) - 1);
    const next = moveCell(this.input.slice, this.cursor ?? { row: 0, column: -1 }, event.key, page);
    if (next) this.choose(next);
    else if (event.key === "+" || event.key === "=") this.zoom(0.8);
    else if (event.key === "-") this.zoom(1.25);
    else if (event.key === "Escape" && this.cursor) this.choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private listen(): void {
    const { signal } = this.stop;
    let drag: { x: number; y: number } | null = null;
    this.canvas.addEventListener("keydown", (event) => this.key(event), { signal });
    this.canvas.addEventListener("copy", (event) => {
      if (!this.chosen) return;
      event.clipboardData?.setData("text/plain", exactFloat32(this.chosen.value));
      event.preventDefault();
    }, { signal });
    const click = (event: MouseEvent): void => this.choose(this.cellAt(event.offsetX, event.offsetY));
    this.canvas.addEventListener("click", click, { signal });
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, y: event.offsetY };
      this.canvas.setPointerCapture(event.pointerId);
    }, { signal });
    this.canvas.addEventListener("pointermove", (event) => {
      if (drag && event.buttons) {
        this.scroll(drag.x - event.offsetX, drag.y - event.offsetY);
        drag = { x: event.offsetX, y: event.offsetY };
      }
      this.hovered(this.cellAt(event.offsetX, event.offsetY));
    }, { signal });
    this.canvas.addEventListener("pointerup", () => (drag = null), { signal });
    this.canvas.addEventListener("pointerleave", () => this.hovered(this.chosen), { signal });
    this.canvas.addEventListener("dblclick", () => this.fit(), { signal });
    // Only with a modifier: a plain wheel must go on scrolling the panel that the picture is in.
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.altKey) return;
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), event.offsetX, event.offsetY);
    }, { signal, passive: false });
  }

  /** By pixels. */
  scroll(dx: number, dy: number): void {
    const { window } = this;
    this.look({
      ...window,
      column: window.column + (dx / this.width) * window.columns,
      row: window.row + (dy / this.drawnHeight()) * window.rows,
    });
  }

  /** Above one: out. The cell at (x, y) stays there. */
  zoom(factor: number, x = this.width / 2, y = this.drawnHeight() / 2): void {
    if (!this.input) return;
    const { window } = this;
    const columns = Math.min(this.input.slice.columns, Math.max(4, window.columns * factor));
    const rows = Math.min(this.input.slice.rows, Math.max(2, window.rows * factor));
    this.look({
      columns,
      rows,
      column: window.column + (x / this.width) * (window.columns - columns),
      row: window.row + (y / this.drawnHeight()) * (window.rows - rows),
    });
  }

  private look(window: CellWindow): void {
    if (!this.input) return;
    const within = (at: number, size: number, all: number): number => Math.max(0, Math.min(all - size, at));
    const { rows, columns } = this.input.slice;
    this.window = {
      ...window,
      row: within(window.row, window.rows, rows),
      column: within(window.column, window.columns, columns),
    };
    this.redraw();
  }
}
