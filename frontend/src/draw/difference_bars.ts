/** A − B in every bar of two histograms: upwards where A has more, downwards where B has. */
import type { Distribution } from "../model/density";
import { shortNumber } from "../model/numbers";
import { withoutCrowding } from "./axis";
import { histogramAxis, type HistogramAxis } from "./histogram_axis";
import { Surface } from "./surface";
import type { Theme } from "./theme";

export interface DifferenceInput {
  readonly a: Distribution;
  readonly b: Distribution;
  readonly theme: Theme;
}

const BELOW = 18;
const LEFT = 46;

export class DifferenceBars extends Surface {
  private input: DifferenceInput | null = null;
  private axis: HistogramAxis | null = null;
  private values: Float64Array = new Float64Array();

  set(input: DifferenceInput): void {
    this.input = input;
    this.axis = histogramAxis([input.a, input.b]); // the same as that of the histograms beside it
    const [a, b] = [input.a, input.b].map((each) => this.axis?.mass(each) ?? new Float64Array());
    this.values = a.map((mass, i) => mass - b[i]);
    this.redraw();
  }

  protected draw(): void {
    const { axis, input, context } = this;
    if (!axis || !input) return;
    const { theme } = input;
    const floor = this.height - BELOW;
    const reach = this.values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9) * 1.1;
    const middle = floor / 2;
    const width = this.width - LEFT;
    const step = width / axis.slices;
    this.values.forEach((value, i) => {
      const height = (value / reach) * middle;
      context.fillStyle = value > 0 ? theme.sideA : theme.sideB;
      const top = height > 0 ? middle - height : middle;
      context.fillRect(LEFT + i * step + 0.5, top, Math.max(1, step - 1), Math.abs(height));
    });
    context.fillStyle = theme.inkFaint;
    context.fillRect(LEFT, middle, width, 1);
    context.font = `10.5px ${theme.numberFont}`;
    context.textAlign = "right";
    for (const part of [reach * 0.8, 0, -reach * 0.8]) {
      const text = part === 0 ? "0" : `${part > 0 ? "+" : "−"}${shortNumber(Math.abs(part) * 100, 2)} %`;
      context.fillText(text, LEFT - 5, middle - (part / reach) * middle + 4);
    }
    context.textAlign = "center";
    for (const { at, text } of withoutCrowding(axis.ticks, (tick) => tick.at * width, 46)) {
      context.fillText(text, LEFT + Math.min(width - 14, Math.max(8, at * width)), this.height - 3);
    }
    context.textAlign = "left";
  }
}
