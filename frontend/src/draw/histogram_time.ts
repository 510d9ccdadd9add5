/** How a distribution moves during training: steps to the right, values upwards, the more mass the brighter. */
import type { Histogram } from "../model/histogram";
import { shortNumber } from "../model/numbers";
import { histogramAxis, type AxisKind, type HistogramAxis } from "./histogram_axis";
import type { ShadeTable } from "./shades";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface HistogramTimeInput {
  /** Ascending. */
  readonly steps: ArrayLike<number>;
  readonly histograms: readonly Histogram[];
  readonly axis: AxisKind;
  readonly table: ShadeTable;
  readonly theme: Theme;
  /** The step to mark; null for none. */
  readonly step: number | null;
}

export interface TimeHit {
  readonly step: number;
  readonly low: number;
  readonly high: number;
  readonly fraction: number;
  readonly x: number;
  readonly y: number;
}

export class HistogramTimePlot extends Surface {
  private input: HistogramTimeInput | null = null;
  private axis: HistogramAxis | null = null;
  private masses: Float64Array[] = [];
  private image: OffscreenCanvas | null = null;
  private drawn: Pick<HistogramTimeInput, "histograms" | "axis" | "table"> | null = null;

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
      drawn?.histograms === input.histograms && drawn.axis === input.axis && drawn.table === input.table;
    this.input = input;
    if (!same) this.prepare(input);
    this.redraw();
  }

  hitAt(x: number, y: number): TimeHit | null {
    if (!this.input || !this.axis || this.masses.length === 0) return null;
    const column = this.columnAt(x);
    const slice = Math.min(this.axis.slices - 1, Math.max(0, Math.floor((1 - y / this.height) * this.axis.slices)));
    const [low, high] = this.axis.range(slice);
    return { step: this.input.steps[column], low, high, fraction: this.masses[column][slice], x, y };
  }

  protected draw(): void {
    if (!this.input || !this.axis || !this.image) return;
    const { context, width, height } = this;
    const { theme, step } = this.input;
    context.imageSmoothingEnabled = false;
    const edges = columnEdges(this.input.steps);
    const [from, to] = [edges[0], edges[edges.length - 1]];
    // Recorded steps get thinner during training: each column is as wide as the time that it stands for.
    for (let k = 0; k + 1 < edges.length; k++) {
      const left = ((edges[k] - from) / (to - from || 1)) * width;
      const right = ((edges[k + 1] - from) / (to - from || 1)) * width;
      context.drawImage(this.image, k, 0, 1, this.image.height, left, 0, right - left + 0.6, height);
    }
    this.drawScale(theme);
    if (step === null) return;
    context.fillStyle = theme.accent;
    context.fillRect(((step - from) / (to - from || 1)) * width - 0.75, 0, 1.5, height);
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
    const { histograms, axis, table } = input;
    this.drawn = { histograms, axis, table };
    this.axis = histogramAxis(axis, histograms);
    this.image = null;
    if (!this.axis || histograms.length === 0) return;
    const { slices } = this.axis;
    this.masses = histograms.map(this.axis.mass);
    const pixels = new Uint32Array(histograms.length * slices);
    this.masses.forEach((mass, column) => {
      const top = mass.reduce((most, part) => Math.max(most, part), 0) || 1;
      for (let slice = 0; slice < slices; slice++) {
        const row = slices - 1 - slice;
        pixels[row * histograms.length + column] = table.pixels[brightness(mass[slice] / top)];
      }
    });
    this.image = new OffscreenCanvas(histograms.length, slices);
    const data = new ImageData(new Uint8ClampedArray(pixels.buffer), histograms.length, slices);
    (this.image.getContext("2d") as OffscreenCanvasRenderingContext2D).putImageData(data, 0, 0);
  }

  private columnAt(x: number): number {
    const { steps } = this.input as HistogramTimeInput;
    const edges = columnEdges(steps);
    const at = edges[0] + (x / this.width) * (edges[edges.length - 1] - edges[0]);
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
  if (count === 1) return [steps[0] - 0.5, steps[0] + 0.5];
  const edges = [steps[0] - (steps[1] - steps[0]) / 2];
  for (let i = 1; i < count; i++) edges.push((steps[i - 1] + steps[i]) / 2);
  edges.push(steps[count - 1] + (steps[count - 1] - steps[count - 2]) / 2);
  return edges;
}
