/** Over the cells of layers × steps: findings on the data, the step, the selection. */
import { columnsOf, type StepAxis } from "../model/layers/axis";
import { RowsView } from "./picture_view";
import { textWidth } from "./text";
import { pageTheme } from "./theme";

export interface HeatMark {
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly severity: "info" | "warning" | "error";
  readonly words: string;
}

export interface MarksPicture {
  readonly axis: StepAxis;
  readonly rowHeight: number;
  readonly rows: number;
  readonly marks: readonly HeatMark[];
  /** -1: none. */
  readonly column: number;
  readonly selected: number;
}

/** Over the cells: outlines of findings with their flags, the step, the selection. */
export class LayersMarks extends RowsView<MarksPicture> {
  protected draw(): void {
    const picture = this.picture;
    if (!picture || picture.axis.edges.length === 0) return;
    this.#drawStep(picture);
    const taken = new Set<number>();
    const inView = picture.marks.filter(({ row }) => {
      const y = this.#y(row, picture);
      return y > -picture.rowHeight && y < this.height;
    });
    for (const mark of inView) this.#outline(mark, picture);
    this.#drawSelected(picture);
    for (const mark of inView) {
      if (!taken.has(mark.row)) this.#flag(mark, picture);
      taken.add(mark.row);
    }
  }

  #y(row: number, { rowHeight }: MarksPicture): number {
    return row * rowHeight - this.top;
  }

  #span({ from, to }: HeatMark, { axis }: MarksPicture): readonly [number, number] {
    const [first, last] = columnsOf(axis, from, to);
    return [axis.edges[2 * first], axis.edges[2 * last + 1]];
  }

  /** Dotted black and white: seen on every colour. */
  #drawStep({ axis, column, rows, rowHeight }: MarksPicture): void {
    if (column < 0) return;
    const x = (axis.edges[2 * column] + axis.edges[2 * column + 1]) / 2;
    const { context } = this;
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    for (const [color, offset] of [["#fff", 0], ["#000", 2]] as const) {
      context.strokeStyle = color;
      context.lineDashOffset = offset;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, Math.min(this.height, rows * rowHeight - this.top));
      context.stroke();
    }
    context.setLineDash([]);
    context.lineDashOffset = 0;
  }

  #outline(mark: HeatMark, picture: MarksPicture): void {
    const { context } = this;
    const theme = pageTheme();
    const [left, right] = this.#span(mark, picture);
    const width = Math.max(5, right - left - 2);
    for (const [line, color] of [
      [4, theme.scheme === "dark" ? "#000a" : "#fffc"],
      [2, mark.severity === "error" ? theme.error : theme.warning],
    ] as const) {
      context.lineWidth = line;
      context.strokeStyle = color;
      context.strokeRect(left + 1, this.#y(mark.row, picture) + 0.5, width, picture.rowHeight - 1);
    }
  }

  #flag(mark: HeatMark, picture: MarksPicture): void {
    const { context } = this;
    const theme = pageTheme();
    const height = Math.min(15, picture.rowHeight + 2);
    context.font = `11px ${theme.font}`;
    const width = textWidth(context, mark.words) + 12;
    const left = this.#span(mark, picture)[0];
    const isRoom = left + width + 8 < this.width;
    const x = isRoom ? left + 6 : Math.max(0, left - width - 4);
    const y = this.#y(mark.row, picture) + (picture.rowHeight - height) / 2;
    context.beginPath();
    context.roundRect(x, y, width, height, 3);
    context.fillStyle = mark.severity === "error" ? "#b4251f" : "#8f4e02";
    context.fill();
    context.strokeStyle = "#ffffffb0";
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = "#ffffff";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText(mark.words, x + 6, y + height / 2 + 0.5);
  }

  #drawSelected(picture: MarksPicture): void {
    const { axis, column, selected, rowHeight } = picture;
    if (selected < 0) return;
    const { context } = this;
    const y = this.#y(selected, picture);
    context.strokeStyle = pageTheme().accent;
    context.lineWidth = 1;
    context.globalAlpha = 0.6;
    context.strokeRect(-2, y - 0.5, this.width + 4, rowHeight + 1);
    context.globalAlpha = 1;
    if (column < 0) return;
    const [left, right] = [axis.edges[2 * column], axis.edges[2 * column + 1]];
    context.lineWidth = 2;
    context.strokeRect(left - 1.5, y - 1, Math.max(4, right - left) + 3, rowHeight + 1.5);
  }
}
