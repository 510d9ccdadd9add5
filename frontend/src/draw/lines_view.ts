/** A few curves over the steps on one axis: a layer, and behind it in grey the same layer of other blocks. */
import { shortNumber } from "../model/numbers";
import { VALUE, type Line } from "../model/layers/derive";
import { pageTheme } from "./theme";
import { PictureView } from "./picture_view";

export interface LinesPicture {
  readonly steps: ArrayLike<number>;
  /** The first is the one that matters. */
  readonly lines: readonly Line[];
  readonly isShare: boolean;
  readonly isLog: boolean;
  readonly last: number;
  readonly step: number | null;
  readonly onsets: readonly { readonly step: number; readonly severity: "info" | "warning" | "error" }[];
}

const [LEFT, RIGHT, TOP, BOTTOM] = [48, 8, 8, 20];

export class LinesView extends PictureView<LinesPicture> {
  protected draw(): void {
    const picture = this.picture;
    if (!picture || picture.steps.length === 0) return;
    const { context } = this;
    const theme = pageTheme();
    const axis = valueAxis(picture);
    const height = this.height - TOP - BOTTOM;
    const from = Math.min(0, picture.steps[0]);
    const perStep = (this.width - LEFT - RIGHT) / (picture.last - from || 1);
    const x = (step: number): number => LEFT + (step - from) * perStep;
    const y = (value: number): number => TOP + height * (1 - axis.place(value));
    context.font = `11px ${theme.numberFont}`;
    context.textBaseline = "middle";
    for (const tick of axis.ticks) {
      context.fillStyle = theme.line;
      context.fillRect(LEFT, Math.round(y(tick)), this.width - LEFT - RIGHT, 1);
      context.fillStyle = theme.inkSoft;
      context.textAlign = "right";
      const text = picture.isShare ? `${Math.round(tick * 100)} %` : shortNumber(tick, 2);
      context.fillText(text, LEFT - 6, y(tick));
    }
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const last = Math.round(picture.last);
    for (const step of [from, Math.round((from + last) / 2), last]) {
      context.textAlign = step === last ? "right" : "center";
      context.fillText(String(step), x(step), this.height - 5);
    }
    for (const { step, severity } of picture.onsets) {
      context.strokeStyle = severity === "error" ? theme.error : theme.warning;
      context.setLineDash([3, 2]);
      vertical(context, x(step), TOP, TOP + height, 1.5);
    }
    context.setLineDash([]);
    if (picture.step !== null) {
      context.strokeStyle = theme.accent;
      vertical(context, x(picture.step), TOP, TOP + height, 1);
    }
    [...picture.lines.keys()].reverse().forEach((place) => {
      context.globalAlpha = place ? 0.55 : 1;
      context.strokeStyle = place ? theme.inkFaint : theme.sideA;
      context.lineWidth = place ? 1 : 2.2;
      this.#stroke(picture, picture.lines[place], x, y);
    });
    context.globalAlpha = 1;
  }

  #stroke(
    { steps, isLog }: LinesPicture, { values, states }: Line, x: (step: number) => number,
    y: (value: number) => number,
  ): void {
    const { context } = this;
    context.beginPath();
    let isDown = false;
    for (let column = 0; column < steps.length; column++) {
      const isThere = states[column] === VALUE;
      if (!isThere) isDown = false;
      else {
        const at = y(isLog ? Math.max(values[column], 0) : values[column]);
        if (isDown) context.lineTo(x(steps[column]), at);
        else context.moveTo(x(steps[column]), at);
        isDown = true;
      }
    }
    context.stroke();
  }
}

function vertical(context: CanvasRenderingContext2D, x: number, from: number, to: number, width: number): void {
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to);
  context.stroke();
}

/** What is below the least positive number of a logarithmic axis, zero above all, lies on its lower end. */
export function valueAxis({ lines, isShare, isLog }: Pick<LinesPicture, "lines" | "isShare" | "isLog">): {
  place: (value: number) => number; ticks: readonly number[];
} {
  if (isShare) return { place: (value) => value, ticks: [0, 0.25, 0.5, 0.75, 1] };
  let [least, most] = [Infinity, -Infinity];
  for (const { values, states } of lines) {
    for (let i = 0; i < values.length; i++) {
      if (states[i] !== VALUE || (isLog && values[i] <= 0)) continue;
      least = Math.min(least, values[i]);
      most = Math.max(most, values[i]);
    }
  }
  if (most < least) return { place: () => 0.5, ticks: [] };
  if (!isLog) {
    const room = (most - least || Math.abs(most) || 1) * 0.06;
    const [low, high] = [least - room, most + room];
    const ticks = [0.1, 0.5, 0.9].map((share) => Number((low + share * (high - low)).toPrecision(2)));
    return { place: (value) => (value - low) / (high - low), ticks };
  }
  const middle = (Math.log10(least) + Math.log10(most)) / 2;
  const half = Math.max(0.5, (Math.log10(most) - Math.log10(least)) / 2) * 1.06;
  const [low, high] = [middle - half, middle + half];
  const by = Math.max(1, Math.ceil((high - low) / 5));
  const ticks: number[] = [];
  for (let power = Math.ceil(low); power <= high; power += by) ticks.push(10 ** power);
  const few = [0.15, 0.85].map((share) => Number((10 ** (low + share * (high - low))).toPrecision(1)));
  if (ticks.length < 2) ticks.splice(0, ticks.length, ...few);
  return { place: (value) => (value <= 0 ? 0 : Math.max(0, (Math.log10(value) - low) / (high - low))), ticks };
}
