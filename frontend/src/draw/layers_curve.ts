/** The loss over layers × steps, in the same columns: recorded steps as ticks, onsets of findings, the chosen step. */
import type { StepAxis } from "../model/layers/axis";
import { pageTheme } from "./theme";
import { PictureView } from "./picture_view";

export interface CurvePicture {
  readonly axis: StepAxis;
  /** Where the columns begin and end. */
  readonly left: number;
  readonly right: number;
  readonly steps: ArrayLike<number>;
  readonly values: ArrayLike<number>;
  readonly onsets: readonly { readonly step: number; readonly severity: "info" | "warning" | "error" }[];
  readonly column: number;
}

export const CURVE_HEIGHT = 62;
const BOTTOM = 20; // ticks and numbers

export class LayersCurve extends PictureView<CurvePicture> {
  protected draw(): void {
    const picture = this.picture;
    if (!picture) return;
    this.#drawLoss(picture);
    this.#drawTicks(picture);
    this.#drawOnsets(picture);
    this.#drawStep(picture);
  }

  #drawLoss({ axis, left, right, steps, values }: CurvePicture): void {
    const { context } = this;
    const theme = pageTheme();
    const { low, high, isLog } = extentOf(values);
    const height = this.height - BOTTOM - 7;
    const at = isLog ? Math.log : (value: number): number => value;
    const span = at(high) - at(low) || 1;
    const y = (value: number): number => 5 + height * (1 - (at(Math.min(value, high)) - at(low)) / span);
    context.strokeStyle = theme.sideA;
    context.lineWidth = 1.3;
    context.lineJoin = "round";
    context.beginPath();
    let [isDown, badFrom] = [false, NaN];
    const bad: [number, number][] = [];
    for (let i = 0; i < steps.length; i++) {
      const value = values[i];
      const x = left + axis.x(steps[i]);
      if (!Number.isFinite(value)) {
        if (Number.isNaN(badFrom)) badFrom = x;
        isDown = false;
        continue;
      }
      if (!Number.isNaN(badFrom)) bad.push([badFrom, x]);
      badFrom = NaN;
      if (isLog && value <= 0) isDown = false;
      else if (isDown) context.lineTo(x, y(value));
      else context.moveTo(x, y(value));
      isDown = !(isLog && value <= 0);
    }
    context.stroke();
    if (!Number.isNaN(badFrom)) bad.push([badFrom, right]);
    // What is no number is a bar, not a gap.
    for (const [from, to] of bad) {
      context.fillStyle = theme.scheme === "dark" ? "#ff4fa3" : "#d1006c";
      context.fillRect(from, 18, Math.max(3, to - from), 5);
      context.font = `11px ${theme.font}`;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      if (to - from > 30) context.fillText("NaN", from + 6, 14);
    }
  }

  #drawTicks({ axis, left, column }: CurvePicture): void {
    const { context } = this;
    const theme = pageTheme();
    context.strokeStyle = theme.inkFaint;
    context.lineWidth = 1;
    context.beginPath();
    let last = -9;
    for (let i = 0; i < axis.edges.length / 2; i++) {
      const x = Math.round(left + middle(axis, i)) + 0.5;
      if (x === last) continue;
      last = x;
      context.moveTo(x, this.height - BOTTOM);
      context.lineTo(x, this.height - BOTTOM + 5);
    }
    context.stroke();
    context.font = `11px ${theme.numberFont}`;
    context.fillStyle = theme.inkSoft;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const chosen = column < 0 ? -999 : left + middle(axis, column);
    for (const [step, x] of numbersBelow(axis)) {
      if (Math.abs(left + x - chosen) > 44) context.fillText(String(step), left + x, this.height - 3);
    }
  }

  #drawOnsets({ axis, left, onsets }: CurvePicture): void {
    const { context } = this;
    const theme = pageTheme();
    context.lineWidth = 1.5;
    context.setLineDash([3, 2]);
    for (const { step, severity } of onsets) {
      const x = left + axis.x(step);
      context.strokeStyle = severity === "error" ? theme.error : theme.warning;
      context.beginPath();
      context.moveTo(x, 2);
      context.lineTo(x, this.height);
      context.stroke();
    }
    context.setLineDash([]);
  }

  #drawStep({ axis, left, column }: CurvePicture): void {
    if (column < 0) return;
    const { context } = this;
    const theme = pageTheme();
    const x = left + middle(axis, column);
    const words = `step ${axis.steps[column]}`;
    context.fillStyle = theme.accent;
    context.fillRect(x - 1, 2, 2, this.height - 16);
    context.font = `600 11px ${theme.font}`;
    const width = context.measureText(words).width + 12;
    const from = Math.min(Math.max(0, x - width / 2), this.width - width);
    context.beginPath();
    context.roundRect(from, this.height - 15, width, 15, 4);
    context.fill();
    context.fillStyle = theme.onAccent;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillText(words, from + width / 2, this.height - 3.5);
  }
}

const middle = ({ edges }: StepAxis, column: number): number => (edges[2 * column] + edges[2 * column + 1]) / 2;

/** What is drawn of a loss: from its least to its 99.8th percentile, logarithmic where it is positive. */
export function extentOf(values: ArrayLike<number>): { low: number; high: number; isLog: boolean } {
  const finite = Float64Array.from(Array.from(values).filter(Number.isFinite)).sort();
  if (finite.length === 0) return { low: 0, high: 1, isLog: false };
  const [low, high] = [finite[0], finite[Math.floor(0.998 * (finite.length - 1))]];
  return { low, high, isLog: low > 0 };
}

/** Round steps, a thumb apart; of equal columns every n-th. */
function numbersBelow(axis: StepAxis): [number, number][] {
  const most = Math.max(2, Math.floor(axis.width / 80));
  const first = axis.steps[0] ?? 0;
  const size = 10 ** Math.floor(Math.log10(Math.max(1, (axis.last - first) / most)));
  const by = [1, 2, 5, 10].map((n) => n * size).find((n) => (axis.last - first) / n <= most) ?? 10 * size;
  const found: [number, number][] = [];
  for (let step = Math.ceil(first / by) * by; step <= axis.last; step += by) {
    const x = axis.x(step);
    if (found.length === 0 || x - found[found.length - 1][1] > 46) found.push([step, x]);
  }
  return found;
}
