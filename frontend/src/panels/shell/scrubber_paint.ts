/** The picture below the handle of the scrubber: loss curves of the trials, and a tick per recorded step. */
import { severityColor, paintMark } from "../../draw/graph_marks";
import { ThemedSurface } from "../../draw/picture_view";
import { pageTheme } from "../../draw/theme";
import type { Span } from "../../model/findings";
import { resolvedColor } from "../curves/colors";
import { ascending, thinned, type Thinned } from "../curves/thin";

export interface ScrubberCurve {
  readonly label: string;
  readonly steps: ArrayLike<number>;
  readonly values: ArrayLike<number>;
  /** CSS. */
  readonly color: string;
}

export interface ScrubberTick {
  readonly step: number;
  /** Of the type that is looked at. */
  readonly fits: boolean;
  /** Raw values were kept. */
  readonly raw: boolean;
}

/** What was found, and when; see model/findings.ts. */
type ScrubberSpan = Pick<Span, "from" | "to" | "severity" | "isChosen" | "words">;

export interface ScrubberPicture {
  readonly curves: readonly ScrubberCurve[];
  readonly ticks: readonly ScrubberTick[];
  readonly spans: readonly ScrubberSpan[];
  readonly from: number;
  readonly to: number;
}

/** Room at both ends, so that the handle is whole on the first and the last step. */
export const MARGIN = 7;
const TICKS_HEIGHT = 11;
const NOISY = 100; // points; with more, the course is drawn over them, which are faint
const LOG_ABOVE = 50; // a loss that falls by more than this is drawn on a logarithmic scale

export class ScrubberPaint extends ThemedSurface {
  #picture: ScrubberPicture = { curves: [], ticks: [], spans: [], from: 0, to: 1 };

  set(picture: ScrubberPicture): void {
    this.#picture = picture;
    this.redraw();
  }

  protected draw(): void {
    const bottom = this.height - TICKS_HEIGHT - 4;
    const scale = valueScale(this.#picture, 4, bottom);
    for (const span of this.#picture.spans) if (span.isChosen) this.#shade(span);
    for (const curve of this.#picture.curves) this.#drawCurve(curve, scale);
    this.#drawTicks(bottom + 4);
    this.#drawSpans(bottom + 4);
  }

  #x(step: number): number {
    const { from, to } = this.#picture;
    return MARGIN + ((step - from) / (to - from || 1)) * (this.width - 2 * MARGIN);
  }

  /** Behind everything: how long the chosen one was seen. */
  #shade({ from, to, severity }: ScrubberSpan): void {
    const { context } = this;
    context.globalAlpha = 0.12;
    context.fillStyle = severityColor(pageTheme(), severity);
    context.fillRect(this.#x(from) - 2, 0, this.#x(to) - this.#x(from) + 4, this.height);
    context.globalAlpha = 1;
  }

  /** A line over the ticks for as long as something was seen, and a mark where it begins. */
  #drawSpans(top: number): void {
    const { context } = this;
    const theme = pageTheme();
    for (const { from, to, severity, isChosen } of this.#picture.spans) {
      context.globalAlpha = isChosen ? 1 : 0.45;
      context.fillStyle = severityColor(theme, severity);
      context.fillRect(this.#x(from), this.height - 3, Math.max(2, this.#x(to) - this.#x(from)), 3);
    }
    context.globalAlpha = 1;
    for (const { from, severity } of this.#picture.spans) {
      paintMark(context, theme, severity, true, this.#x(from), top + TICKS_HEIGHT / 2, 4.5);
    }
  }

  #drawCurve(curve: ScrubberCurve, y: Scale): void {
    const { context } = this;
    const { from, to } = this.#picture;
    const sorted = ascending(curve.steps, [curve.values]);
    const window = { from, to, columns: Math.max(1, Math.round(this.width)), log: y.log };
    const isNoisy = sorted.x.length > NOISY;
    context.strokeStyle = resolvedColor(curve.color);
    context.lineJoin = "round";
    if (isNoisy) {
      context.globalAlpha = 0.22;
      this.#stroke(thinned(sorted.x, sorted.ys[0], window), y, 1);
      context.globalAlpha = 1;
    }
    const values = isNoisy ? smoothed(sorted.ys[0]) : sorted.ys[0];
    this.#stroke(thinned(sorted.x, values, window), y, 1.5);
  }

  #stroke(points: Thinned, y: Scale, width: number): void {
    const { context } = this;
    context.beginPath();
    let isDown = false;
    points.x.forEach((step, i) => {
      const value = points.y[i];
      if (value === null) isDown = false;
      else if (isDown) context.lineTo(this.#x(step), y.place(value));
      else {
        context.moveTo(this.#x(step), y.place(value));
        isDown = true;
      }
    });
    context.lineWidth = width;
    context.stroke();
  }

  /** Ticks of another type are fainter, those with raw values longer; where there are many they become a band. */
  #drawTicks(top: number): void {
    const { context } = this;
    const theme = pageTheme();
    for (const fits of [false, true]) {
      context.beginPath();
      for (const tick of this.#picture.ticks) {
        if (tick.fits !== fits) continue;
        const x = Math.round(this.#x(tick.step)) + 0.5;
        context.moveTo(x, top + (tick.raw ? 0 : 4));
        context.lineTo(x, top + TICKS_HEIGHT - 1);
      }
      context.strokeStyle = fits ? theme.inkFaint : theme.lineStrong;
      context.lineWidth = 1;
      context.stroke();
    }
  }
}

/** The course of a noisy curve: a mean that forgets, over about a fortieth of its length. */
function smoothed(values: ArrayLike<number | null>): Float64Array {
  const result = new Float64Array(values.length).fill(NaN);
  const keep = 1 - Math.min(1, 40 / values.length);
  let [sum, weight] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || !Number.isFinite(value)) continue;
    sum = sum * keep + value;
    weight = weight * keep + 1;
    result[i] = sum / weight;
  }
  return result;
}

interface Scale {
  readonly log: boolean;
  readonly place: (value: number) => number;
}

/** Most of the values fill the height; the few highest, as in the very beginning, may be cut. */
function valueScale({ curves }: ScrubberPicture, top: number, bottom: number): Scale {
  const all: number[] = [];
  for (const { values } of curves) {
    const every = Math.max(1, Math.floor(values.length / 2000));
    for (let i = 0; i < values.length; i += every) if (Number.isFinite(values[i])) all.push(values[i]);
  }
  all.sort((a, b) => a - b);
  const at = (share: number): number => all[Math.round(share * (all.length - 1))] ?? 0;
  const [low, high] = [at(0.002), at(0.998)];
  const log = low > 0 && high / low > LOG_ABOVE;
  const bend = log ? Math.log : (value: number) => value;
  const [least, most] = [bend(low), bend(high)];
  const clamp = (t: number): number => Math.min(Math.max(t, 0), 1);
  const place = (value: number): number => bottom - clamp((bend(value) - least) / (most - least || 1)) * (bottom - top);
  return { log, place };
}
