/** How a distribution moves during training: steps to the right, values upwards, the more mass the brighter. */
import { addUp, type Histogram } from "../model/histogram";
import { shortNumber } from "../model/numbers";
import { histogramAxis, type HistogramAxis } from "./histogram_axis";
import type { ShadeTable } from "./shades";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface HistogramTimeInput {
  /** Ascending. */
  readonly steps: ArrayLike<number>;
  readonly histograms: readonly Histogram[];
  /** Its elements are whole numbers. */
  readonly isWhole?: boolean;
  readonly table: ShadeTable;
  readonly theme: Theme;
  /** The step to mark; null for none. */
  readonly step: number | null;
  /** First and last step in view, to agree with a plot above; null or left out: all of them. */
  readonly range?: readonly [number, number] | null;
}

export interface TimeHit {
  readonly step: number;
  readonly low: number;
  readonly high: number;
  readonly fraction: number;
  readonly x: number;
  readonly y: number;
}

const SLICES = 48;

export class HistogramTimePlot extends Surface {
  private input: HistogramTimeInput | null = null;
  private axis: HistogramAxis | null = null;
  private masses: (Float64Array | undefined)[] = []; // of the columns that were drawn or pointed at
  private edges: readonly number[] = [];
  private image: { readonly pixels: OffscreenCanvas; readonly key: string } | null = null;
  private drawn: Pick<HistogramTimeInput, "histograms" | "isWhole" | "table"> | null = null;

  constructor(
    canvas: HTMLCanvasElement,
    hovered: (hit: TimeHit | null) => void = () => {},
    chosen: (step: number) => void = () => {},
  ) {
    super(canvas);
    const { signal } = this.stop;
    canvas.addEventListener("pointermove", (event) => hovered(this.hitAt(event.offsetX, event.offsetY)), { signal });
    canvas.addEventListener("pointerleave", () => hovered(null), { signal });
    canvas.addEventListener("click", (event) => {
      const hit = this.hitAt(event.offsetX, event.offsetY);
      if (hit) chosen(hit.step);
    }, { signal });
  }

  /** Moving the marked step costs one line; the picture is made again only for other histograms. */
  set(input: HistogramTimeInput): void {
    const { drawn } = this;
    const same =
      drawn?.histograms === input.histograms && drawn.isWhole === input.isWhole && drawn.table === input.table;
    this.input = input;
    if (!same) this.prepare(input);
    this.redraw();
  }

  hitAt(x: number, y: number): TimeHit | null {
    if (!this.input || !this.axis || this.input.histograms.length === 0) return null;
    const column = this.columnAt(x);
    const slice = Math.min(this.axis.slices - 1, Math.max(0, Math.floor((1 - y / this.height) * this.axis.slices)));
    const [low, high] = this.axis.range(slice);
    return { step: this.input.steps[column], low, high, fraction: this.massOf(column, this.axis)[slice], x, y };
  }

  protected draw(): void {
    if (!this.input || !this.axis || this.input.histograms.length === 0) return;
    const { context, width, height } = this;
    const { theme, step } = this.input;
    const [from, to] = this.ends();
    const key = `${this.canvas.width} ${from} ${to}`;
    if (this.image?.key !== key) this.image = { key, pixels: this.imageOf(this.input, this.axis, from, to) };
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image.pixels, 0, 0, width, height);
    this.drawScale(theme);
    if (step === null) return;
    context.fillStyle = theme.accent;
    context.fillRect(((step - from) / (to - from || 1)) * width - 0.75, 0, 1.5, height);
  }

  /**
   * As wide as the canvas, and made again only when that or the part in view has changed. Recorded steps get thinner
   * during training: each is as wide as the time that it stands for. Those between two pixels are never looked at.
   */
  private imageOf({ table }: HistogramTimeInput, axis: HistogramAxis, from: number, to: number): OffscreenCanvas {
    const { width } = this.canvas;
    const { slices } = axis;
    const { edges } = this;
    const pixels = new Uint32Array(width * slices);
    const strip = new Uint32Array(slices); // of one step, highest values first
    let [column, drawn] = [0, -1];
    for (let x = 0; x < width; x++) {
      const at = from + ((x + 0.5) / width) * (to - from);
      if (at < edges[0] || at > edges[edges.length - 1]) continue;
      while (column + 2 < edges.length && edges[column + 1] <= at) column++;
      if (drawn !== column) this.shade(strip, this.massOf(column, axis), table);
      drawn = column;
      for (let row = 0; row < slices; row++) pixels[row * width + x] = strip[row];
    }
    const image = new OffscreenCanvas(width, slices);
    const data = new ImageData(new Uint8ClampedArray(pixels.buffer), width, slices);
    (image.getContext("2d") as OffscreenCanvasRenderingContext2D).putImageData(data, 0, 0);
    return image;
  }

  private shade(strip: Uint32Array, mass: Float64Array, table: ShadeTable): void {
    let top = 0;
    for (let slice = 0; slice < mass.length; slice++) top = Math.max(top, mass[slice]);
    for (let slice = 0; slice < mass.length; slice++) {
      strip[mass.length - 1 - slice] = table.pixels[brightness(mass[slice] / (top || 1))];
    }
  }

  private massOf(column: number, axis: HistogramAxis): Float64Array {
    const { histograms, isWhole = false } = this.input as HistogramTimeInput;
    return (this.masses[column] ??= axis.mass({ histogram: histograms[column], isWhole }));
  }

  private drawScale(theme: Theme): void {
    if (!this.axis) return;
    const { context, height } = this;
    context.font = `10px ${theme.numberFont}`;
    const texts = [[shortNumber(this.axis.high, 2), 11], [shortNumber(this.axis.low, 2), height - 4]] as const;
    for (const [text, y] of texts) {
      context.fillStyle = "rgb(0 0 0 / 55%)";
      context.fillRect(2, y - 9, context.measureText(text).width + 6, 12);
      context.fillStyle = "white";
      context.fillText(text, 5, y);
    }
  }

  private prepare(input: HistogramTimeInput): void {
    const { histograms, isWhole = false, table } = input;
    this.drawn = { histograms, isWhole, table };
    this.edges = columnEdges(input.steps);
    // One range for all steps, from the percentiles of all of them together.
    this.axis = histogramAxis([{ histogram: addUp(histograms), isWhole }], SLICES);
    this.image = null;
    this.masses = [];
  }

  private ends(): readonly [number, number] {
    return this.input?.range ?? [this.edges[0], this.edges[this.edges.length - 1]];
  }

  private columnAt(x: number): number {
    const { steps } = this.input as HistogramTimeInput;
    const { edges } = this;
    const [from, to] = this.ends();
    const at = from + (x / this.width) * (to - from);
    let column = 0;
    while (column + 1 < steps.length && edges[column + 1] <= at) column++;
    return column;
  }
}

/** Thin tails would be invisible on a straight scale. */
const brightness = (part: number): number =>
  part <= 0 ? 0 : 12 + Math.round((243 * Math.log1p(40 * part)) / Math.log1p(40));

/** Halfway between steps; one more than there are steps. */
export function columnEdges(steps: ArrayLike<number>): number[] {
  const count = steps.length;
  if (count === 0) return [];
  if (count === 1) return [steps[0] - 0.5, steps[0] + 0.5];
  const edges = [steps[0] - (steps[1] - steps[0]) / 2];
  for (let i = 1; i < count; i++) edges.push((steps[i - 1] + steps[i]) / 2);
  edges.push(steps[count - 1] + (steps[count - 1] - steps[count - 2]) / 2);
  return edges;
}
