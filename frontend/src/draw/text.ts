/** Text on canvases: cut to fit, measured once. */
import { shorten } from "../model/names";

const widths = new Map<string, number>();
const MOST_KNOWN = 20_000;

export function textWidth(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font}\u0000${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > MOST_KNOWN) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

const fitted = new Map<string, string>();

/** The text, with its middle left out as far as needed; empty if not even three letters fit. */
export function fitText(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (textWidth(context, text) <= room) return text;
  const key = `${context.font}\u0000${Math.floor(room)}\u0000${text}`;
  let found = fitted.get(key);
  if (found === undefined) {
    if (fitted.size > MOST_KNOWN) fitted.clear();
    found = cut(context, text, room);
    fitted.set(key, found);
  }
  return found;
}

function cut(context: CanvasRenderingContext2D, text: string, room: number): string {
  let length = Math.min(text.length - 1, Math.floor((text.length * room) / textWidth(context, text)) + 1);
  while (length > 2 && context.measureText(shorten(text, length)).width > room) length--;
  return length > 2 ? shorten(text, length) : "";
}
