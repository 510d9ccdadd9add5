/** Text on canvases: cut to fit, measured once. */
import { shorten } from "../model/names";

type Context = CanvasRenderingContext2D;

const MOST_KNOWN = 20_000;
/** Font -> text -> width. */
const widths = new Map<string, Map<string, number>>();
const fitted = new Map<string, Map<string, string>>();

function known<T>(all: Map<string, Map<string, T>>, font: string): Map<string, T> {
  let found = all.get(font);
  if (!found) all.set(font, (found = new Map()));
  if (found.size > MOST_KNOWN) found.clear();
  return found;
}

/**
 * `font` is what the context's font was set to. Whoever draws thousands of texts should pass it: asking the context
 * for it takes longer than everything else here.
 */
export function textWidth(context: Context, text: string, font: string = context.font): number {
  const ofFont = known(widths, font);
  let width = ofFont.get(text);
  if (width === undefined) ofFont.set(text, (width = context.measureText(text).width));
  return width;
}

/** The text, with its middle left out as far as needed; empty if not even three letters fit. */
export function fitText(context: Context, text: string, room: number, font: string = context.font): string {
  if (textWidth(context, text, font) <= room) return text;
  const ofFont = known(fitted, font);
  const key = `${Math.floor(room)}\u0000${text}`;
  let found = ofFont.get(key);
  if (found === undefined) ofFont.set(key, (found = cut(context, text, room)));
  return found;
}

function cut(context: Context, text: string, room: number): string {
  let length = Math.min(text.length - 1, Math.floor((text.length * room) / textWidth(context, text)) + 1);
  while (length > 2 && context.measureText(shorten(text, length)).width > room) length--;
  return length > 2 ? shorten(text, length) : "";
}
