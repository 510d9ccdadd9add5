/**
 * Numbers in rows and columns, for tensors of any size: only what is in view is drawn, on one canvas that stays in
 * place while an empty element of the full size scrolls below it.
 */
import { shadeOf, VALUE, type HeatScale } from "../model/heat";
import { shortNumber } from "../model/numbers";
import { valueAt, type Slice } from "../model/slices";
import {
  blockOf, CELL_HEIGHT, CELL_WIDTH, cellAtPoint, cellsInView, copyText, HEAD_HEIGHT, HEAD_WIDTH, moveCell,
  type Cell, type CellBlock, type CellRange,
} from "./grid_cells";
import type { ShadeTable } from "./shades";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface NumberGridInput {
  readonly slice: Slice;
  readonly theme: Theme;
  /** Colours behind the numbers; null for none. */
  readonly tint: { readonly scale: HeatScale; readonly table: ShadeTable } | null;
  /** What to call rows and columns, if not by their position: kept samples have numbers, sorted units places. */
  readonly rowName?: (row: number) => string;
  readonly columnName?: (column: number) => string;
}

/** `scroller` is an empty element that scrolls (overflow: auto) and takes the focus (tabindex 0). */
export class NumberGrid extends Surface {
  private input: NumberGridInput | null = null;
  private range: CellRange | null = null;
  private readonly spacer: HTMLElement;
  private readonly frame: ResizeObserver;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly pointed: (cell: Cell | null, value: number) => void = () => {},
  ) {
    super(scroller.ownerDocument.createElement("canvas"));
    this.canvas.style.cssText = "position:sticky;left:0;top:0;display:block";
    this.spacer = scroller.ownerDocument.createElement("div");
    this.spacer.style.cssText = "min-width:100%;min-height:100%";
    this.spacer.append(this.canvas);
    scroller.append(this.spacer);
    this.frame = new ResizeObserver(() => this.fillFrame());
    this.frame.observe(scroller);
    this.fillFrame();
    this.listen();
  }

  set(input: NumberGridInput): void {
    const { slice } = input;
    if (this.input && (this.input.slice.rows !== slice.rows || this.input.slice.columns !== slice.columns)) {
      this.range = null;
    }
    this.input = input;
    this.spacer.style.width = `${HEAD_WIDTH + slice.columns * CELL_WIDTH}px`;
    this.spacer.style.height = `${HEAD_HEIGHT + slice.rows * CELL_HEIGHT}px`;
    this.fillFrame(); // scroll bars may have come or gone
    this.redraw();
  }

  get selection(): CellRange | null {
    return this.range;
  }

  override close(): void {
    super.close();
    this.frame.disconnect();
    this.spacer.remove();
  }

  private fillFrame(): void {
    this.canvas.style.width = `${this.scroller.clientWidth}px`;
    this.canvas.style.height = `${this.scroller.clientHeight}px`;
  }

  protected draw(): void {
    if (!this.input) return;
    const { context } = this;
    const { theme, slice } = this.input;
    const { scrollLeft, scrollTop } = this.scroller;
    const view = cellsInView(slice, scrollLeft, scrollTop, this.width, this.height);
    context.font = `11.5px ${theme.numberFont}`;
    context.textAlign = "right";
    context.save();
    context.beginPath();
    context.rect(HEAD_WIDTH, HEAD_HEIGHT, this.width, this.height);
    context.clip();
    this.drawCells(view, scrollLeft, scrollTop);
    this.drawSelection(scrollLeft, scrollTop);
    context.restore();
    this.drawHeads(view, scrollLeft, scrollTop);
    context.textAlign = "left";
  }

  private drawCells(view: CellBlock, scrollLeft: number, scrollTop: number): void {
    const { slice, theme, tint } = this.input as NumberGridInput;
    const { context } = this;
    for (let row = view.top; row < view.bottom; row++) {
      const y = HEAD_HEIGHT + row * CELL_HEIGHT - scrollTop;
      for (let column = view.left; column < view.right; column++) {
        const x = HEAD_WIDTH + column * CELL_WIDTH - scrollLeft;
        const value = valueAt(slice, row, column) as number;
        const odd = !Number.isFinite(value);
        const shade = tint ? shadeOf(value, VALUE, tint.scale) : -1;
        if (tint) {
          context.fillStyle = tint.table.fill[shade];
          context.fillRect(x, y, CELL_WIDTH - 1, CELL_HEIGHT - 1);
        }
        context.fillStyle = tint ? tint.table.ink[shade] : odd ? theme.error : value === 0 ? theme.inkFaint : theme.ink;
        context.fillText(shortNumber(value), x + CELL_WIDTH - 7, y + 14.5);
      }
    }
    if (tint) return;
    context.fillStyle = theme.line;
    for (let row = view.top; row < view.bottom; row++) {
      context.fillRect(HEAD_WIDTH, HEAD_HEIGHT + (row + 1) * CELL_HEIGHT - scrollTop - 1, this.width, 1);
    }
  }

  private drawHeads(view: CellBlock, scrollLeft: number, scrollTop: number): void {
    const { theme, rowName = String, columnName = String } = this.input as NumberGridInput;
    const { context } = this;
    context.fillStyle = theme.raised;
    context.fillRect(0, 0, this.width, HEAD_HEIGHT);
    context.fillRect(0, 0, HEAD_WIDTH, this.height);
    context.fillStyle = theme.inkFaint;
    const clipped = (x: number, y: number, width: number, height: number, draw: () => void): void => {
      context.save();
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      draw();
      context.restore();
    };
    clipped(HEAD_WIDTH, 0, this.width, HEAD_HEIGHT, () => {
      for (let column = view.left; column < view.right; column++) {
        context.fillText(columnName(column), HEAD_WIDTH + (column + 1) * CELL_WIDTH - scrollLeft - 7, 14.5);
      }
    });
    clipped(0, HEAD_HEIGHT, HEAD_WIDTH, this.height, () => {
      for (let row = view.top; row < view.bottom; row++) {
        context.fillText(rowName(row), HEAD_WIDTH - 8, HEAD_HEIGHT + row * CELL_HEIGHT - scrollTop + 14.5);
      }
    });
    context.fillStyle = theme.lineStrong;
    context.fillRect(0, HEAD_HEIGHT - 1, this.width, 1);
    context.fillRect(HEAD_WIDTH - 1, 0, 1, this.height);
  }

  private drawSelection(scrollLeft: number, scrollTop: number): void {
    if (!this.range) return;
    const { theme } = this.input as NumberGridInput;
    const { top, left, bottom, right } = blockOf(this.range);
    const x = HEAD_WIDTH + left * CELL_WIDTH - scrollLeft;
    const y = HEAD_HEIGHT + top * CELL_HEIGHT - scrollTop;
    const [width, height] = [(right - left) * CELL_WIDTH - 1, (bottom - top) * CELL_HEIGHT - 1];
    const { context } = this;
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.14;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
  }

  private select(from: Cell, to: Cell): void {
    this.range = { from, to };
    if (this.input) this.pointed(to, valueAt(this.input.slice, to.row, to.column) ?? NaN);
    this.redraw();
  }

  private cellAt(event: PointerEvent): Cell | null {
    const { left, top } = this.canvas.getBoundingClientRect();
    const { scrollLeft, scrollTop } = this.scroller;
    if (!this.input) return null;
    return cellAtPoint(this.input.slice, scrollLeft, scrollTop, event.clientX - left, event.clientY - top);
  }

  private listen(): void {
    const { signal } = this.stop;
    const { scroller, canvas } = this;
    scroller.addEventListener("scroll", () => this.paint(), { signal, passive: true });
    canvas.addEventListener("pointerdown", (event) => {
      const cell = this.cellAt(event);
      if (!cell || event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.select(event.shiftKey && this.range ? this.range.from : cell, cell);
    }, { signal });
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      if (cell && this.range && event.buttons & 1) return this.select(this.range.from, cell);
      this.pointed(cell, cell && this.input ? (valueAt(this.input.slice, cell.row, cell.column) as number) : NaN);
    }, { signal });
    scroller.addEventListener("copy", (event) => {
      if (!this.range || !this.input) return;
      event.clipboardData?.setData("text/plain", copyText(this.input.slice, this.range));
      event.preventDefault();
    }, { signal });
    scroller.addEventListener("keydown", (event) => this.key(event), { signal });
  }

  private key(event: KeyboardEvent): void {
    if (!this.input) return;
    const { slice } = this.input;
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      this.select({ row: 0, column: 0 }, { row: slice.rows - 1, column: slice.columns - 1 });
    } else {
      const now = this.range?.to ?? { row: 0, column: -1 };
      const next = moveCell(slice, now, event.key, Math.floor(this.height / CELL_HEIGHT) - 2);
      if (!next) return;
      this.select(event.shiftKey && this.range ? this.range.from : next, next);
      this.show(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private show({ row, column }: Cell): void {
    const { scroller } = this;
    const follow = (at: number, size: number, room: number, now: number): number =>
      Math.min(at, Math.max(now, at + size - room));
    scroller.scrollTop = follow(row * CELL_HEIGHT, CELL_HEIGHT, this.height - HEAD_HEIGHT, scroller.scrollTop);
    scroller.scrollLeft = follow(column * CELL_WIDTH, CELL_WIDTH, this.width - HEAD_WIDTH, scroller.scrollLeft);
  }
}
