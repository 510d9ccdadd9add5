/** How a distribution moves during training: one outline per step, values to the right, the newest in front. */
import { addUp, type Histogram } from "../model/histogram";
import { ridgesOf } from "../model/ridges";
import { histogramAxis, type HistogramAxis } from "./histogram_axis";
import { PictureView } from "./picture_view";
import { pageTheme } from "./theme";

export interface RidgesPicture {
  /** Ascending. */
  readonly steps: ArrayLike<number>;
  readonly histograms: readonly Histogram[];
  /** Its elements are whole numbers. */
  readonly isWhole: boolean;
  /** The step to mark; null for none. */
  readonly step: number | null;
}

const SLICES = 40;
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 8, 30, 16];
const POWER = 0.6; // one peak does not flatten the others
const LABEL_GAP = 13;

export class HistogramRidges extends PictureView<RidgesPicture> {
  #drawn: readonly Histogram[] | null = null;
  #axis: HistogramAxis | null = null;

  /** The step whose outline begins nearest below a place; null if there is none. */
  stepAt(y: number): number | null {
    if (!this.picture) return null;
    const rows = ridgesOf(this.picture.steps, this.picture.step);
    const place = Math.round((y - TOP) / this.#gap(rows.length));
    return rows.length ? this.picture.steps[rows[Math.max(0, Math.min(rows.length - 1, place))]] : null;
  }

  #gap(rows: number): number {
    return (this.height - TOP - BOTTOM) / Math.max(1, rows - 1);
  }

  protected draw(): void {
    const { picture } = this;
    if (!picture || picture.histograms.length === 0) return;
    const { histograms, isWhole, steps, step } = picture;
    if (this.#drawn !== histograms) {
      this.#drawn = histograms;
      this.#axis = histogramAxis([{ histogram: addUp(histograms), isWhole }], SLICES);
    }
    const axis = this.#axis;
    if (!axis) return;
    const rows = ridgesOf(steps, step);
    const shares = rows.map((row) => axis.mass({ histogram: histograms[row], isWhole }));
    const most = Math.max(...shares.map((share) => Math.max(...share)));
    const gap = this.#gap(rows.length);
    const highest = Math.min(TOP - 4, 3 * gap) + gap / 2;
    let written = -LABEL_GAP;
    rows.forEach((row, i) => {
      const isChosen = steps[row] === step;
      this.#outline(shares[i], TOP + i * gap, highest / most ** POWER, isChosen);
      const y = TOP + i * gap;
      if (y - written < LABEL_GAP && !isChosen) return;
      written = y;
      this.#label(String(steps[row]), y, isChosen);
    });
    this.#values(axis);
  }

  #outline(share: Float64Array, bottom: number, scale: number, isChosen: boolean): void {
    const { context } = this;
    const theme = pageTheme();
    const wide = (this.width - LEFT - RIGHT) / share.length;
    context.beginPath();
    context.moveTo(LEFT, bottom);
    share.forEach((mass, slice) => context.lineTo(LEFT + (slice + 0.5) * wide, bottom - scale * mass ** POWER));
    context.lineTo(this.width - RIGHT, bottom);
    context.fillStyle = theme.panel;
    context.fill();
    context.strokeStyle = isChosen ? theme.accent : theme.inkSoft;
    context.lineWidth = isChosen ? 2 : 1;
    context.stroke();
  }

  #label(text: string, y: number, isChosen: boolean): void {
    const { context } = this;
    const theme = pageTheme();
    context.font = `${isChosen ? "600 " : ""}10px ${theme.numberFont}`;
    const width = context.measureText(text).width;
    context.fillStyle = theme.panel; // the chosen one is written over one that is near
    context.fillRect(LEFT - 8 - width, y - 6, width + 4, 12);
    context.fillStyle = isChosen ? theme.accent : theme.inkSoft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(text, LEFT - 6, y);
  }

  #values(axis: HistogramAxis): void {
    const { context } = this;
    const theme = pageTheme();
    context.font = `10px ${theme.numberFont}`;
    context.fillStyle = theme.inkSoft;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (const { at, text } of axis.ticks) {
      context.fillText(text, LEFT + at * (this.width - LEFT - RIGHT), this.height - 3);
    }
  }
}
