/** Nodes and closed groups: filled by heat, framed by kind, with a strip of cells if they hold several tensors. */
import { heatText, SHADE_ABSENT, SHADE_INF, SHADE_NAN, worstShade } from "../model/heat";
import { moduleMark } from "../model/scene";
import { itemArea, type Rect } from "./camera";
import { cellRange, type Strip } from "./cells";
import { tintOf, type GraphState } from "./graph_state";
import { paintWide } from "./graph_wide";
import { stripes } from "./shades";
import { fitText, textWidth } from "./text";

/** Zoom from which on both lines of text are drawn, then one line in larger letters, then none. */
export const TWO_LINES = 0.76; // eight pixels of the smaller letters are the least
export const ONE_LINE = 0.34;

export function paintBox(context: CanvasRenderingContext2D, state: GraphState, item: number, scale: number): void {
  const box = itemArea(state.picture.layout, item);
  const look = lookOf(state, item);
  context.globalAlpha = look.faded ? 0.35 : 1;
  paintCard(context, state, item, box, look, scale);
  context.globalAlpha = 1;
}

interface Look {
  readonly record: number;
  readonly shade: number; // -1 without heat
  readonly fill: string;
  readonly ink: string;
  readonly kind: string;
  readonly faded: boolean;
  readonly isGroup: boolean;
  readonly isWide: boolean;
}

function lookOf(state: GraphState, item: number): Look {
  const { theme, table, shades, faces, present, apart, history } = state;
  const { node, address, isWide } = state.picture.scene.items[item];
  const record = item === state.selectedItem && state.record >= 0 ? state.record : faces[item];
  const tint = tintOf(state, item, record);
  const shade = shades ? shades[tint] : -1;
  // A wide box has its colours in its strip; labels, ids and single numbers have none.
  const plain = shade < 0 || shade === SHADE_ABSENT || (isWide && history !== null) || Boolean(apart?.[record]);
  return {
    record,
    shade,
    fill: plain ? theme.panel : table.fill[shade],
    ink: plain ? theme.ink : table.ink[shade],
    kind: theme.kinds[state.picture.scene.model.nodes[node].kind],
    faded: present !== null && !present[tint],
    isGroup: address !== "",
    isWide,
  };
}

function paintCard(
  context: CanvasRenderingContext2D,
  state: GraphState,
  item: number,
  box: Rect,
  look: Look,
  scale: number,
): void {
  const { theme } = state;
  const outline = Math.max(1.3, 0.9 / scale);
  if (look.isGroup) paintPile(context, box, theme.raised, theme.lineStrong, outline);
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, 6);
  context.fillStyle = look.fill;
  context.fill();
  if (look.fill !== theme.panel || look.shade === SHADE_ABSENT) paintStripes(context, state, look);
  context.strokeStyle = look.isWide ? theme.lineStrong : look.kind;
  context.lineWidth = outline;
  context.stroke();
  context.fillStyle = look.kind;
  const inset = Math.min(6, box.height / 4);
  context.fillRect(box.x, box.y + inset, 4, box.height - 2 * inset);

  if (state.picture.scene.items[item].isChip) {
    if (scale >= ONE_LINE) paintChipText(context, state, item, box, look);
    return;
  }
  const strip = state.strips.of(state.picture.layout, item);
  if (look.isWide) {
    const isApart = Boolean(state.apart?.[look.record]);
    paintWide(context, state, item, box, { ...look, value: valueText(state, item), isApart }, scale);
    if (strip && scale >= ONE_LINE) paintStrip(context, state, strip);
    return;
  }
  const textBottom = strip ? strip.y : box.y + box.height;
  if (scale >= TWO_LINES) paintTwoLines(context, state, item, box, look);
  else if (scale >= ONE_LINE) paintOneLine(context, state, item, { ...box, height: textBottom - box.y }, look, scale);
  if (strip && scale >= ONE_LINE) paintStrip(context, state, strip);
}

/** A closed group lies on others. */
function paintPile(context: CanvasRenderingContext2D, box: Rect, fill: string, line: string, width: number): void {
  context.fillStyle = fill;
  context.strokeStyle = line;
  context.lineWidth = width;
  for (const shift of [6, 3]) {
    context.beginPath();
    context.roundRect(box.x + shift, box.y + shift, box.width, box.height, 6);
    context.fill();
    context.stroke();
  }
}

/** On the current path: no value is hatched, what is not a number is striped over its glaring colour. */
function paintStripes(context: CanvasRenderingContext2D, state: GraphState, look: Look): void {
  if (look.isWide && look.shade === SHADE_ABSENT) return; // said by the strip
  if (look.shade === SHADE_ABSENT) context.fillStyle = stripes(context, state.theme.hatch, true) ?? look.fill;
  else if (look.shade === SHADE_NAN) context.fillStyle = stripes(context, "rgb(0 0 0 / 45%)", false) ?? look.fill;
  else if (look.shade === SHADE_INF) context.fillStyle = stripes(context, "rgb(0 0 0 / 45%)", true) ?? look.fill;
  else return;
  context.fill();
}

function textsOf(state: GraphState, item: number): { label: string; detail: string; value: string; marks: string } {
  const { items, model } = state.picture.scene;
  const { node, label, detail, address } = items[item];
  const marks = address ? moduleMark(items[item]) : model.nodes[node].recurrent ? "↻" : "";
  return { label, detail, value: valueText(state, item), marks };
}

/** The number behind the colour. */
function valueText(state: GraphState, item: number): string {
  const { heat, shades } = state;
  const { record, shade } = lookOf(state, item);
  if (!heat || !shades || shade === SHADE_ABSENT) return "";
  if (shade === SHADE_NAN) return "NaN";
  if (shade === SHADE_INF) return "Inf";
  return heatText(heat, tintOf(state, item, record), 2);
}

function paintTwoLines(
  context: CanvasRenderingContext2D,
  state: GraphState,
  item: number,
  box: Rect,
  look: Look,
): void {
  const { theme } = state;
  const { label, detail, value, marks } = textsOf(state, item);
  const bold = `600 11.5px ${theme.font}`;
  const mono = `10.5px ${theme.numberFont}`;
  context.fillStyle = look.ink;
  context.font = bold;
  const markWidth = marks ? textWidth(context, marks, bold) + 6 : 0;
  context.fillText(fitText(context, label, box.width - 18 - markWidth, bold), box.x + 11, box.y + 15);
  if (marks) context.fillText(marks, box.x + box.width - 2 - markWidth, box.y + 15);
  context.font = mono;
  const room = box.width - 20;
  const valueWidth = value ? textWidth(context, value, mono) + 8 : 0;
  if (look.shade < 0 || look.shade === SHADE_ABSENT) context.fillStyle = theme.inkSoft;
  // The shape gives way to the value where both do not fit: the value is what was asked for.
  const isLong = valueWidth > 0 && textWidth(context, detail, mono) > room - valueWidth;
  const short = isLong ? detail.split(" · ")[0] : detail;
  if (textWidth(context, short, mono) <= room - valueWidth || !value) {
    context.fillText(fitText(context, short, room - valueWidth, mono), box.x + 11, box.y + 29);
  }
  if (value) context.fillText(value, box.x + box.width - 1 - valueWidth, box.y + 29);
}

/** A parameter beside its reader: one line. The value takes the place of the shape. */
function paintChipText(
  context: CanvasRenderingContext2D, state: GraphState, item: number, box: Rect, look: Look,
): void {
  const { theme } = state;
  const { label, detail, value } = textsOf(state, item);
  const bold = `600 10.5px ${theme.font}`;
  const mono = `10px ${theme.numberFont}`;
  const aside = value || detail;
  context.font = mono;
  const room = box.width - 14;
  const shown = textWidth(context, aside, mono) + 6;
  const name = fitText(context, label, Math.max(room - shown, room / 2), bold);
  context.font = bold;
  context.fillStyle = look.ink;
  context.fillText(name, box.x + 9, box.y + box.height / 2 + 4);
  const left = textWidth(context, name, bold) + 6;
  context.font = mono;
  if (look.shade < 0 || look.shade === SHADE_ABSENT) context.fillStyle = theme.inkSoft;
  context.fillText(fitText(context, aside, room - left, mono), box.x + 9 + left, box.y + box.height / 2 + 4);
}

function paintOneLine(
  context: CanvasRenderingContext2D,
  state: GraphState,
  item: number,
  box: Rect,
  look: Look,
  scale: number,
): void {
  // A few fixed sizes, so that texts are measured once and not for every step of a zoom.
  const size = scale > 0.6 ? 14 : scale > 0.48 ? 16 : 19;
  const font = `600 ${size}px ${state.theme.font}`;
  context.font = font;
  context.fillStyle = look.ink;
  const { label, value, marks } = textsOf(state, item);
  const baseline = box.y + box.height / 2 + size * 0.36;
  const text = fitText(context, label, box.width - 18, font);
  context.fillText(text, box.x + 11, baseline);
  const aside = look.isGroup ? marks : value;
  if (size > 14 || !aside) return;
  const room = box.width - 26 - textWidth(context, text, font);
  const mono = `12.5px ${state.theme.numberFont}`;
  context.font = mono;
  const width = textWidth(context, aside, mono);
  if (width <= room) context.fillText(aside, box.x + box.width - 8 - width, baseline);
}

function paintStrip(context: CanvasRenderingContext2D, state: GraphState, strip: Strip): void {
  const { theme, present } = state;
  const step = strip.width / strip.cells;
  const gap = step > 5 ? 1 : 0;
  context.fillStyle = theme.panel;
  context.fillRect(strip.x - 1, strip.y - 1, strip.width + 2 - gap, strip.height + 2);
  for (let cell = 0; cell < strip.cells; cell++) {
    const records = strip.records.slice(...cellRange(strip, cell));
    context.fillStyle = cellFill(state, records);
    context.globalAlpha = present && !present[records[0]] ? 0.25 : 1;
    context.fillRect(strip.x + cell * step, strip.y, step - gap, strip.height);
    if (strip.records.length > 1 && records.includes(state.record)) {
      context.globalAlpha = 1;
      context.strokeStyle = theme.accent;
      context.lineWidth = 2;
      context.strokeRect(strip.x + cell * step - 1, strip.y - 1, step - gap + 2, strip.height + 2);
    }
  }
  context.globalAlpha = 1;
}

function cellFill(state: GraphState, records: readonly number[]): string {
  const { shades, table, theme, apart } = state;
  if (shades && apart?.[records[0]]) return theme.line; // labels, ids and single numbers have no colour
  if (!shades) {
    const { model } = state.picture.scene;
    return theme.kinds[model.nodes[model.nodeOfRecord[records[0]]].kind];
  }
  const shade = records.map((record) => shades[record]).reduce(worstShade);
  return shade === SHADE_ABSENT ? theme.line : table.fill[shade];
}
