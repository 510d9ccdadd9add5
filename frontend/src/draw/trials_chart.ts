/** Trials as lines through parallel axes, or as points over two of them. */
import type { ChartAxis } from "../model/overview/axis";
import { ThemedSurface } from "./picture_view";
import { fitText } from "./text";
import { pageTheme } from "./theme";

export type { ChartAxis };

export interface ChartTrial {
  readonly name: string;
  readonly color: string;
  readonly isChosen: boolean;
}

const NEAR = 8; // pixels

abstract class TrialsView extends ThemedSurface {
  protected axes: readonly ChartAxis[] = [];
  protected trials: readonly ChartTrial[] = [];
  protected pointed = -1;

  set(axes: readonly ChartAxis[], trials: readonly ChartTrial[]): void {
    [this.axes, this.trials] = [axes, trials];
    this.redraw();
  }

  point(place: number): void {
    if (place === this.pointed) return;
    this.pointed = place;
    this.redraw();
  }

  /** The trial at a place of the canvas; -1 if there is none. */
  abstract hit(x: number, y: number): number;

  /** Others first, then what was chosen, then what is pointed at. */
  protected inOrder(): number[] {
    const rank = (place: number): number => (place === this.pointed ? 2 : this.trials[place].isChosen ? 1 : 0);
    return [...this.trials.keys()].sort((a, b) => rank(a) - rank(b));
  }

  protected strength(place: number): number {
    if (place === this.pointed) return 1;
    const isAny = this.pointed >= 0 || this.trials.some(({ isChosen }) => isChosen);
    if (!isAny) return this.trials.length > 60 ? 0.35 : 0.8;
    return this.trials[place].isChosen ? 0.9 : 0.15;
  }
}

const [SIDE, TOP, BOTTOM] = [60, 28, 14];

export class ParallelView extends TrialsView {
  protected draw(): void {
    const { context } = this;
    const theme = pageTheme();
    for (const place of this.inOrder()) {
      context.strokeStyle = this.trials[place].color;
      context.globalAlpha = this.strength(place);
      context.lineWidth = place === this.pointed ? 2.5 : 1.3;
      context.beginPath();
      let isDown = false;
      this.axes.forEach((axis, i) => {
        const at = axis.places[place];
        if (Number.isNaN(at)) isDown = false;
        else {
          if (isDown) context.lineTo(this.#x(i), this.#y(at));
          else context.moveTo(this.#x(i), this.#y(at));
          isDown = true;
        }
      });
      context.stroke();
    }
    context.globalAlpha = 1;
    context.font = `11px ${theme.font}`;
    const room = this.#x(1) - this.#x(0) - 10 || 120;
    this.axes.forEach((axis, i) => {
      const x = this.#x(i);
      context.fillStyle = theme.lineStrong;
      context.fillRect(x - 0.5, TOP, 1, this.height - TOP - BOTTOM);
      context.textBaseline = "alphabetic";
      context.textAlign = "center";
      context.fillStyle = theme.ink;
      context.fillText(fitText(context, axis.label, room), x, 14);
      context.textBaseline = "middle";
      context.textAlign = "left";
      for (const { place, text } of axis.ticks) {
        const words = fitText(context, text, room - 8);
        context.fillStyle = theme.panel;
        context.globalAlpha = 0.75;
        context.fillRect(x + 3, this.#y(place) - 6, context.measureText(words).width + 4, 12);
        context.globalAlpha = 1;
        context.fillStyle = theme.inkSoft;
        context.fillText(words, x + 5, this.#y(place));
      }
    });
  }

  hit(x: number, y: number): number {
    const count = this.axes.length;
    const left = Math.max(0, Math.min(count - 2, Math.floor((x - this.#x(0)) / (this.#x(1) - this.#x(0)))));
    const share = (x - this.#x(left)) / (this.#x(left + 1) - this.#x(left));
    let [best, least] = [-1, NEAR];
    for (let place = 0; place < this.trials.length && count > 1; place++) {
      const [a, b] = [this.axes[left].places[place], this.axes[left + 1].places[place]];
      const away = Math.abs(this.#y(a) + share * (this.#y(b) - this.#y(a)) - y);
      if (away < least) [best, least] = [place, away];
    }
    return best;
  }

  #x(axis: number): number {
    return SIDE + (axis / Math.max(1, this.axes.length - 1)) * (this.width - 2 * SIDE);
  }

  #y(place: number): number {
    return TOP + 8 + (1 - place) * (this.height - TOP - BOTTOM - 16);
  }
}

export class ScatterView extends TrialsView {
  protected draw(): void {
    const [across, up] = this.axes;
    if (!across || !up) return;
    const { context } = this;
    const theme = pageTheme();
    context.font = `11px ${theme.font}`;
    context.fillStyle = theme.line;
    context.fillRect(SIDE, 8, 1, this.height - 40);
    context.fillRect(SIDE, this.height - 32, this.width - SIDE - 16, 1);
    context.fillStyle = theme.inkSoft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { place, text } of up.ticks) {
      context.fillText(fitText(context, text, SIDE - 10), SIDE - 6, this.#y(place));
    }
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (const { place, text } of across.ticks) {
      context.fillText(fitText(context, text, 90), this.#x(place), this.height - 18);
    }
    context.fillStyle = theme.ink;
    context.fillText(across.label, (SIDE + this.width) / 2, this.height - 4);
    for (const place of this.inOrder()) {
      const [x, y] = [across.places[place], up.places[place]];
      if (Number.isNaN(x) || Number.isNaN(y)) continue;
      context.globalAlpha = this.strength(place);
      context.fillStyle = this.trials[place].color;
      context.beginPath();
      context.arc(this.#x(x), this.#y(y), place === this.pointed ? 6 : 4, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  hit(x: number, y: number): number {
    const [across, up] = this.axes;
    let [best, least] = [-1, NEAR];
    for (let place = 0; across && up && place < this.trials.length; place++) {
      const away = Math.hypot(this.#x(across.places[place]) - x, this.#y(up.places[place]) - y);
      if (away < least) [best, least] = [place, away];
    }
    return best;
  }

  #x(place: number): number {
    return SIDE + 12 + place * (this.width - SIDE - 40);
  }

  #y(place: number): number {
    return 16 + (1 - place) * (this.height - 60);
  }
}
