/** The distribution of one tensor, and perhaps of another one to compare with. */
import type { Distribution } from "../model/density";
import { withoutCrowding } from "./axis";
import { heightOf, histogramAxis, type HistogramAxis, type Heights } from "./histogram_axis";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface HistogramInput {
  readonly distribution: Distribution;
  /** Drawn as an outline over the first. */
  readonly other: Distribution | null;
  readonly heights: Heights;
  readonly theme: Theme;
  readonly color: string;
  readonly otherColor: string;
  /** Both are outlines with a thin fill: neither hides the other. */
  readonly areSides?: boolean;
  /** Values to mark with a line: mean, quantiles. */
  readonly marks: readonly { readonly value: number; readonly label: string }[];
}

export interface SliceHit {
  readonly low: number;
  readonly high: number;
  /** Part of the whole, 0 … 1. */
  readonly fraction: number;
  readonly otherFraction: number | null;
  readonly x: number;
  readonly y: number;
}

const BELOW = 18;
const ABOVE = 14; // for the names of marks

export class HistogramPlot extends Surface {
  private input: HistogramInput | null = null;
  private axis: HistogramAxis | null = null;
  private mass: Float64Array = new Float64Array();
  private otherMass: Float64Array | null = null;

  constructor(canvas: HTMLCanvasElement, hovered: (hit: SliceHit | null) => void = () => {}) {
    super(canvas);
    const { signal } = this.stop;
    canvas.addEventListener("pointermove", (event) => hovered(this.sliceAt(event.offsetX, event.offsetY)), { signal });
    canvas.addEventListener("pointerleave", () => hovered(null), { signal });
  }

  set(input: HistogramInput): void {
    this.input = input;
    const all = input.other ? [input.distribution, input.other] : [input.distribution];
    this.axis = histogramAxis(all);
    this.mass = this.axis?.mass(input.distribution) ?? new Float64Array();
    this.otherMass = input.other && this.axis ? this.axis.mass(input.other) : null;
    this.redraw();
  }

  sliceAt(x: number, y: number): SliceHit | null {
    if (!this.axis || x < 0 || x >= this.width) return null;
    const slice = Math.floor((x / this.width) * this.axis.slices);
    const [low, high] = this.axis.range(slice);
    return { low, high, fraction: this.mass[slice], otherFraction: this.otherMass?.[slice] ?? null, x, y };
  }

  protected draw(): void {
    if (!this.input || !this.axis) return;
    const { context, width } = this;
    const { theme, color, otherColor } = this.input;
    const floor = this.height - BELOW;
    const top = Math.max(largest(this.mass), this.otherMass ? largest(this.otherMass) : 0) || 1;
    const step = width / this.axis.slices;
    if (this.input.areSides) this.drawOutline(this.mass, top, step, floor, color);
    else this.drawBars(top, step, floor, color);
    if (this.otherMass) this.drawOutline(this.otherMass, top, step, floor, otherColor);
    context.fillStyle = theme.lineStrong;
    context.fillRect(0, floor, width, 1);
    this.drawTicks(floor);
    this.drawMarks(floor);
  }

  private drawBars(top: number, step: number, floor: number, color: string): void {
    const { context } = this;
    const heights = this.input?.heights ?? "linear";
    context.fillStyle = color;
    this.mass.forEach((mass, i) => {
      // Whatever is there is seen, be it one element in a million.
      const height = mass > 0 ? Math.max(1.5, heightOf(mass, top, heights) * (floor - ABOVE)) : 0;
      context.fillRect(i * step, floor - height, Math.max(1, step - (step > 4 ? 1 : 0)), height);
    });
  }

  private drawOutline(mass: Float64Array, top: number, step: number, floor: number, color: string): void {
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = 1.6;
    context.beginPath();
    context.moveTo(0, floor);
    mass.forEach((part, i) => {
      const y = floor - heightOf(part, top, this.input?.heights ?? "linear") * (floor - ABOVE);
      context.lineTo(i * step, y);
      context.lineTo((i + 1) * step, y);
    });
    context.lineTo(this.width, floor);
    if (this.input?.areSides) {
      context.globalAlpha = 0.14;
      context.fillStyle = color;
      context.fill();
      context.globalAlpha = 1;
    }
    context.stroke();
  }

  private drawTicks(floor: number): void {
    if (!this.input || !this.axis) return;
    const { context, width } = this;
    context.font = `10.5px ${this.input.theme.numberFont}`;
    context.textAlign = "center";
    for (const { at, text } of this.roomyTicks()) {
      const x = Math.min(width - 14, Math.max(14, at * width));
      context.fillStyle = this.input.theme.lineStrong;
      context.fillRect(at * width - 0.5, floor, 1, 4);
      context.fillStyle = this.input.theme.inkFaint;
      context.fillText(text, x, this.height - 3);
    }
    context.textAlign = "left";
  }

  private roomyTicks() {
    const ticks = this.axis?.ticks ?? [];
    return withoutCrowding(ticks, (tick) => tick.at * this.width, 46, (tick) => tick.text === "0");
  }

  private drawMarks(floor: number): void {
    if (!this.input || !this.axis) return;
    const { context } = this;
    context.font = `10.5px ${this.input.theme.font}`;
    for (const { value, label } of this.input.marks) {
      const x = this.placeOf(value);
      if (x === null) continue;
      context.fillStyle = this.input.theme.ink;
      context.fillRect(x - 0.5, 0, 1, floor);
      const room = context.measureText(label).width + 4;
      context.fillText(label, x + room < this.width ? x + 4 : x - room, 10);
    }
  }

  private placeOf(value: number): number | null {
    if (!this.axis || value < this.axis.low || value > this.axis.high) return null;
    return ((value - this.axis.low) / (this.axis.high - this.axis.low)) * this.width;
  }
}

const largest = (values: Float64Array): number => values.reduce((most, value) => Math.max(most, value), 0);
