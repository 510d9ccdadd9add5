/** Cells of layers × steps: rows in view only, a pixel at a time; findings, step and selection on a layer of their own. */
import type { PixelColumns, StepAxis } from "../model/layers/axis";
import { columnsOf, pixelColumns } from "../model/layers/axis";
import { INFINITE, NAN, VALUE, type Line } from "../model/layers/derive";
import { urgency, type LayerScale } from "../model/layers/scale";
import { shadeTable } from "./shades";
import { SHADE_INF, SHADE_NAN, SHADE_ZERO } from "../model/heat";
import { onThemeChange, pageTheme, parseRgb } from "./theme";
import { Surface } from "./surface";
import { textWidth } from "./text";

export interface HeatPicture {
  readonly rows: number;
  readonly rowHeight: number;
  /** Null: nothing is drawn there. */
  readonly line: (row: number) => Line | null;
  readonly scale: LayerScale;
  readonly axis: StepAxis;
}

const STRIPE = 6; // pixels from one stripe to the next

export class LayersHeat extends Surface {
  #picture: HeatPicture | null = null;
  #top = 0;
  #columns: { axis: StepAxis; pixels: number; columns: PixelColumns } | null = null;

  constructor(canvas: HTMLCanvasElement) {
    super(canvas);
    const stop = onThemeChange(() => this.redraw());
    this.stop.signal.addEventListener("abort", stop);
  }

  set(picture: HeatPicture | null): void {
    this.#picture = picture;
    this.paint();
  }

  scroll(top: number): void {
    if (top === this.#top) return;
    this.#top = top;
    this.paint();
  }

  protected draw(): void {
    const picture = this.#picture;
    if (!picture || picture.axis.edges.length === 0) return;
    const [width, height] = [this.canvas.width, this.canvas.height];
    const ratio = height / this.height;
    const image = this.context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const columns = this.#columnsFor(picture.axis, width);
    const theme = pageTheme();
    const table = shadeTable(picture.scale.kind, theme.scheme, theme.panelRgb);
    const hatch = pixelOf(theme.hatch);
    const line = new Uint32Array(width);
    const kinds = new Uint8Array(width); // 0 plain, 1 hatched, 2 NaN, 3 infinite
    const first = Math.max(0, Math.floor(this.#top / picture.rowHeight));
    const last = Math.min(picture.rows, Math.ceil((this.#top + this.height) / picture.rowHeight));
    for (let row = first; row < last; row++) {
      const cells = picture.line(row);
      if (!cells) continue;
      const isStriped = fillLine(cells, columns, picture.scale, table.pixels, line, kinds);
      const from = Math.round((row * picture.rowHeight - this.#top + 0.5) * ratio);
      const to = Math.round(((row + 1) * picture.rowHeight - this.#top - 0.5) * ratio);
      for (let y = Math.max(0, from); y < Math.min(height, to); y++) {
        pixels.set(line, y * width);
        if (isStriped) stripe(pixels, y, width, ratio, kinds, hatch);
      }
    }
    this.context.putImageData(image, 0, 0);
  }

  #columnsFor(axis: StepAxis, pixels: number): PixelColumns {
    if (this.#columns?.axis !== axis || this.#columns.pixels !== pixels) {
      this.#columns = { axis, pixels, columns: pixelColumns(axis, pixels) };
    }
    return this.#columns.columns;
  }
}

/** One row as pixels; answers whether any of them is striped. */
function fillLine(
  cells: Line, { starts, ends }: PixelColumns, scale: LayerScale, shades: Uint32Array, line: Uint32Array,
  kinds: Uint8Array,
): boolean {
  let isStriped = false;
  let [lastStart, lastEnd] = [-1, -1];
  for (let x = 0; x < line.length; x++) {
    const [start, end] = [starts[x], ends[x]];
    if (start === lastStart && end === lastEnd) {
      line[x] = line[x - 1];
      kinds[x] = kinds[x - 1];
      continue;
    }
    [lastStart, lastEnd] = [start, end];
    if (start === end) {
      line[x] = 0;
      kinds[x] = 0;
      continue;
    }
    const worst = end - start === 1 ? start : worstOf(cells, start, end, scale);
    const [value, state] = [cells.values[worst], cells.states[worst]];
    kinds[x] = state === VALUE ? 0 : state === NAN ? 2 : state === INFINITE ? 3 : 1;
    if (kinds[x] !== 0) isStriped = true;
    if (state === VALUE) {
      const isZero = value === 0 && scale.kind === "log";
      line[x] = shades[isZero ? SHADE_ZERO : Math.round(scale.place(value) * 255)];
    } else line[x] = state === NAN ? shades[SHADE_NAN] : state === INFINITE ? shades[SHADE_INF] : 0;
  }
  return isStriped;
}

function worstOf({ values, states }: Line, start: number, end: number, scale: LayerScale): number {
  let [worst, most] = [start, -1];
  for (let column = start; column < end; column++) {
    const urgent = urgency(values[column], states[column], scale);
    if (urgent > most) [worst, most] = [column, urgent];
  }
  return worst;
}

function stripe(
  pixels: Uint32Array, y: number, width: number, ratio: number, kinds: Uint8Array, hatch: number,
): void {
  const [step, thick] = [Math.round(STRIPE * ratio), Math.max(1, Math.round(1.2 * ratio))];
  for (let x = 0; x < width; x++) {
    const kind = kinds[x];
    if (kind === 0) continue;
    const isOn = (kind === 3 ? x - y + 1e6 * step : x + y) % step < thick;
    if (isOn) pixels[y * width + x] = kind === 1 ? hatch : 0xffffffff;
  }
}

function pixelOf(color: string): number {
  const [r, g, b] = parseRgb(color);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export interface HeatMark {
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly severity: "info" | "warning" | "error";
  readonly words: string;
}

export interface MarksPicture {
  readonly axis: StepAxis;
  readonly rowHeight: number;
  readonly rows: number;
  readonly marks: readonly HeatMark[];
  /** -1: none. */
  readonly column: number;
  readonly selected: number;
}

/** Over the cells: outlines of findings with their flags, the step, the selection. */
export class LayersMarks extends Surface {
  #picture: MarksPicture | null = null;
  #top = 0;

  constructor(canvas: HTMLCanvasElement) {
    super(canvas);
    const stop = onThemeChange(() => this.redraw());
    this.stop.signal.addEventListener("abort", stop);
  }

  set(picture: MarksPicture): void {
    this.#picture = picture;
    this.paint();
  }

  scroll(top: number): void {
    if (top === this.#top) return;
    this.#top = top;
    this.paint();
  }

  protected draw(): void {
    const picture = this.#picture;
    if (!picture || picture.axis.edges.length === 0) return;
    this.#drawStep(picture);
    const taken = new Set<number>();
    const inView = picture.marks.filter(({ row }) => this.#y(row, picture) > -picture.rowHeight && this.#y(row, picture) < this.height);
    for (const mark of inView) this.#outline(mark, picture);
    this.#drawSelected(picture);
    for (const mark of inView) {
      if (!taken.has(mark.row)) this.#flag(mark, picture);
      taken.add(mark.row);
    }
  }

  #y(row: number, { rowHeight }: MarksPicture): number {
    return row * rowHeight - this.#top;
  }

  #span({ from, to }: HeatMark, { axis }: MarksPicture): readonly [number, number] {
    const [first, last] = columnsOf(axis, from, to);
    return [axis.edges[2 * first], axis.edges[2 * last + 1]];
  }

  /** Dotted black and white: seen on every colour. */
  #drawStep({ axis, column, rows, rowHeight }: MarksPicture): void {
    if (column < 0) return;
    const x = (axis.edges[2 * column] + axis.edges[2 * column + 1]) / 2;
    const { context } = this;
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    for (const [color, offset] of [["#fff", 0], ["#000", 2]] as const) {
      context.strokeStyle = color;
      context.lineDashOffset = offset;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, Math.min(this.height, rows * rowHeight - this.#top));
      context.stroke();
    }
    context.setLineDash([]);
    context.lineDashOffset = 0;
  }

  #outline(mark: HeatMark, picture: MarksPicture): void {
    const { context } = this;
    const theme = pageTheme();
    const [left, right] = this.#span(mark, picture);
    const width = Math.max(5, right - left - 2);
    for (const [line, color] of [
      [4, theme.scheme === "dark" ? "#000a" : "#fffc"],
      [2, mark.severity === "error" ? theme.error : theme.warning],
    ] as const) {
      context.lineWidth = line;
      context.strokeStyle = color;
      context.strokeRect(left + 1, this.#y(mark.row, picture) + 0.5, width, picture.rowHeight - 1);
    }
  }

  #flag(mark: HeatMark, picture: MarksPicture): void {
    const { context } = this;
    const theme = pageTheme();
    const height = Math.min(15, picture.rowHeight + 2);
    context.font = `11px ${theme.font}`;
    const width = textWidth(context, mark.words) + 12;
    const left = this.#span(mark, picture)[0];
    const isRoom = left + width + 8 < this.width;
    const x = isRoom ? left + 6 : Math.max(0, left - width - 4);
    const y = this.#y(mark.row, picture) + (picture.rowHeight - height) / 2;
    context.beginPath();
    context.roundRect(x, y, width, height, 3);
    context.fillStyle = mark.severity === "error" ? "#b4251f" : "#8f4e02";
    context.fill();
    context.strokeStyle = "#ffffffb0";
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = "#ffffff";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText(mark.words, x + 6, y + height / 2 + 0.5);
  }

  #drawSelected(picture: MarksPicture): void {
    const { axis, column, selected, rowHeight } = picture;
    if (selected < 0) return;
    const { context } = this;
    const y = this.#y(selected, picture);
    context.strokeStyle = pageTheme().accent;
    context.lineWidth = 1;
    context.globalAlpha = 0.6;
    context.strokeRect(-2, y - 0.5, this.width + 4, rowHeight + 1);
    context.globalAlpha = 1;
    if (column < 0) return;
    const [left, right] = [axis.edges[2 * column], axis.edges[2 * column + 1]];
    context.lineWidth = 2;
    context.strokeRect(left - 1.5, y - 1, Math.max(4, right - left) + 3, rowHeight + 1.5);
  }
}
