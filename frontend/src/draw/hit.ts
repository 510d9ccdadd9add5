/** What is below the pointer. */
import { HEADER, type Picture } from "../model/scene";
import { recordAt, type Strips } from "./cells";

export interface Hit {
  readonly item: number;
  /** `box` a node or a closed group, `cell` one tensor in its strip, `fold` where a click opens or closes, `inside`. */
  readonly part: "box" | "cell" | "fold" | "inside";
  /** The tensor of a cell, else -1. */
  readonly record: number;
}

/** Size of the corner of a closed group that opens it. */
export const FOLD_CORNER = 24;
const SMALLEST_CELL = 0.5; // zoom below which cells are too small to aim at

export function hitTest(picture: Picture, strips: Strips, x: number, y: number, scale: number): Hit | null {
  const { scene, layout } = picture;
  // What is inside comes after what is around it, so the first hit from the end is the innermost.
  for (let i = scene.items.length - 1; i >= 0; i--) {
    const dx = x - layout.x[i];
    const dy = y - layout.y[i];
    if (dx < 0 || dy < 0 || dx > layout.width[i] || dy > layout.height[i]) continue;
    const item = scene.items[i];
    if (item.open) return { item: i, part: dy <= HEADER ? "fold" : "inside", record: -1 };
    const strip = scale >= SMALLEST_CELL ? strips.of(layout, i) : null;
    if (strip && dy >= strip.y - layout.y[i] - 1) return { item: i, part: "cell", record: recordAt(strip, x) };
    const corner = item.address !== "" && dx > layout.width[i] - FOLD_CORNER && dy < FOLD_CORNER;
    return { item: i, part: corner ? "fold" : "box", record: -1 };
  }
  return null;
}
