/** A box with a row for itself: name and type, its number now, and a strip of all steps. */
import { moduleMark } from "../model/scene";
import type { Rect } from "./camera";
import type { GraphState } from "./graph_state";
import { paintStripImage, STRIP_WIDTH } from "./graph_strips";
import { fitText, textWidth } from "./text";

const STRIP_HEIGHT = 14;
const MARGIN = 9;
const NUMBER_ROOM = 52;
const TEXTS_FROM = 0.42; // zoom from which letters can be read

export interface WideLook {
  readonly record: number;
  readonly kind: string;
  /** The number now; empty if there is none. */
  readonly value: string;
  readonly isApart: boolean;
  readonly ink: string;
}

/** The row of a wide box: below it there may be cells. */
export const WIDE_ROW = 28;

/** Where its strip is. */
export const stripArea = (box: Rect): Rect => ({
  x: box.x + box.width - STRIP_WIDTH - MARGIN, y: box.y + (WIDE_ROW - STRIP_HEIGHT) / 2, width: STRIP_WIDTH,
  height: STRIP_HEIGHT,
});

export function paintWide(
  context: CanvasRenderingContext2D, state: GraphState, item: number, box: Rect, look: WideLook, scale: number,
): void {
  const { theme, history } = state;
  const hasStrip = history !== null && !look.isApart;
  if (hasStrip) paintHistory(context, state, stripArea(box), look.record);
  if (scale < TEXTS_FROM) return;
  const { items, model } = state.picture.scene;
  const { label, node, address } = items[item];
  const right = hasStrip ? stripArea(box).x - 8 : box.x + box.width - MARGIN;
  const mono = `11px ${theme.numberFont}`;
  context.font = mono;
  context.fillStyle = hasStrip ? theme.inkSoft : look.ink;
  const valueWidth = look.value ? textWidth(context, look.value, mono) : 0;
  if (look.value) context.fillText(look.value, right - valueWidth, box.y + 18);
  const bold = `600 12px ${theme.font}`;
  const small = `11px ${theme.font}`;
  const mark = address ? moduleMark(items[item]) : model.nodes[node].recurrent ? "↻" : "";
  const markWidth = mark ? textWidth(context, mark, small) + 8 : 0;
  const room = right - Math.max(valueWidth, NUMBER_ROOM) - 8 - (box.x + 12) - markWidth;
  const [name, type] = nameAndType(label, typeOf(state, item));
  context.font = bold;
  context.fillStyle = look.ink;
  const shown = fitText(context, name, room, bold);
  context.fillText(shown, box.x + 12, box.y + 18);
  let x = box.x + 12 + textWidth(context, shown, bold) + 6;
  context.font = small;
  context.fillStyle = look.ink === theme.ink ? theme.inkFaint : look.ink;
  const left = box.x + 12 + room - x;
  const words = left > 22 ? fitText(context, type, left, small) : "";
  if (words) context.fillText(words, x, box.y + 18);
  if (words) x += textWidth(context, words, small) + 6;
  if (mark) context.fillText(mark, x, box.y + 18);
}

/** `0 · Linear` is a name and a type already. */
function nameAndType(label: string, type: string): [string, string] {
  const [name, own = ""] = label.split(" · ");
  return [name, own || (label.includes(type) ? "" : type)];
}

function typeOf({ picture: { scene: { items, model } } }: GraphState, item: number): string {
  const { address, node } = items[item];
  if (address) return model.groups.find((group) => group.address === address)?.type ?? "";
  const { type, kind, name } = model.nodes[node];
  const around = model.groups[model.nodes[node].group];
  if (name === around.address) return around.type ? `of ${around.type}` : "";
  return type || kind;
}

function paintHistory(context: CanvasRenderingContext2D, state: GraphState, area: Rect, record: number): void {
  const { theme, images, history } = state;
  paintStripImage(context, images.of(record), area, theme.panel, theme.hatch);
  if (!history || history.at < 0) return;
  context.fillStyle = theme.panel;
  const x = area.x + history.at * (area.width - 2);
  context.fillRect(x - 1, area.y - 2, 4, area.height + 4);
  context.fillStyle = theme.ink;
  context.fillRect(x, area.y - 2, 2, area.height + 4);
}
