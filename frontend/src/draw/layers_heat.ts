/** Cells of layers × steps: rows in view only, a pixel at a time. */
import type { PixelColumns, StepAxis } from "../model/layers/axis";
import { pixelColumns } from "../model/layers/axis";
import { INFINITE, NAN, VALUE, type Line } from "../model/layers/derive";
import { urgencyOn, type LayerScale } from "../model/layers/scale";
import { shadeTable } from "./shades";
import { SHADE_INF, SHADE_NAN, SHADE_ZERO } from "../model/heat";
import { pageTheme, parseRgb } from "./theme";
import { RowsView } from "./picture_view";

export interface HeatPicture {
  readonly rows: number;
  readonly rowHeight: number;
  /** Null: nothing is drawn there. */
  readonly line: (row: number) => Line | null;
  readonly scale: LayerScale;
  readonly axis: StepAxis;
}

const STRIPE = 6; // pixels from one stripe to the next

export class LayersHeat extends RowsView<HeatPicture> {
  #columns: { axis: StepAxis; pixels: number; columns: PixelColumns } | null = null;

  protected draw(): void {
    const picture = this.picture;
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
    const first = Math.max(0, Math.floor(this.top / picture.rowHeight));
    const last = Math.min(picture.rows, Math.ceil((this.top + this.height) / picture.rowHeight));
    for (let row = first; row < last; row++) {
      const cells = picture.line(row);
      if (!cells) continue;
      const isStriped = fillLine(cells, columns, picture.scale, table.pixels, line, kinds);
      const from = Math.round((row * picture.rowHeight - this.top + 0.5) * ratio);
      const to = Math.round(((row + 1) * picture.rowHeight - this.top - 0.5) * ratio);
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
  const urgency = urgencyOn(scale);
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
    const worst = end - start === 1 ? start : worstOf(cells, start, end, urgency);
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

function worstOf(
  { values, states }: Line, start: number, end: number, urgency: (value: number, state: number) => number,
): number {
  let [worst, most] = [start, -1];
  for (let column = start; column < end; column++) {
    const urgent = urgency(values[column], states[column]);
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
