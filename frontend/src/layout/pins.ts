/** Boxes that the user put somewhere. Pins are kept relative to the inside of the box around them. */
import type { Picture } from "./client";
import { flowPath, movedPath, type Path } from "./curves";
import type { LevelInput } from "./grid";
import type { LevelLayout } from "./level";
import type { Pins } from "./sizes";
import { HEADER, PADDING } from "./types";

/**
 * Boxes that the user placed stay where they were put; their edges lead there directly. One that was put beyond the
 * upper left corner moves that corner: all others shift, and the pin stays as it is.
 */
export function applyPins(input: LevelInput, level: LevelLayout): LevelLayout {
  const [shiftX, shiftY] = shiftOf(input.pins);
  const x = level.x.map((value, box) => shiftX + (input.pins[box]?.[0] ?? value));
  const y = level.y.map((value, box) => shiftY + (input.pins[box]?.[1] ?? value));
  const least = (values: readonly number[], sizes: readonly number[]): number =>
    values.reduce((most, value, box) => Math.max(most, value + sizes[box]), 0);
  const width = Math.max(input.leastWidth, least(x, input.widths));
  const height = least(y, input.heights);
  const [leftY, rightY] = [level.leftY + shiftY, level.rightY + shiftY];
  const leftOf = (box: number): number[] => [x[box], y[box] + input.leftPort[box]];
  const rightOf = (box: number): number[] => [x[box] + input.widths[box], y[box] + input.rightPort[box]];
  const isPinned = (box: number): boolean => input.pins[box] !== null;
  const edges = level.edges.map((path, i): Path => {
    const [from, to] = input.edges[i];
    if (isPinned(from) || isPinned(to)) return flowPath([...rightOf(from), ...leftOf(to)]);
    return movedPath(path, shiftX, shiftY);
  });
  // The borders may have moved, so every path to them is drawn anew.
  const left = new Map(input.left.map((box) => [box, flowPath([-PADDING, leftY, ...leftOf(box)])]));
  const right = new Map(input.right.map((box) => [box, flowPath([...rightOf(box), width + PADDING, rightY])]));
  return { ...level, x, y, width, height, edges, left, right, leftY, rightY };
}

/** How far everything on a level moves so that its pins have room. */
function shiftOf(pins: readonly (readonly [number, number] | null | undefined)[]): [number, number] {
  let [left, top] = [0, 0];
  for (const pin of pins) {
    if (!pin) continue;
    left = Math.min(left, pin[0]);
    top = Math.min(top, pin[1]);
  }
  return [0 - left, 0 - top];
}

/** The pin that puts a box to a place of the picture, as whole numbers. */
export function pinAt({ scene, layout }: Picture, pins: Pins, item: number, x: number, y: number): [number, number] {
  const { parent } = scene.items[item];
  const siblings = scene.items.filter((other) => other.parent === parent);
  const [shiftX, shiftY] = shiftOf(siblings.map((other) => pins[other.key]));
  const [left, top] = parent < 0 ? [0, 0] : [layout.x[parent] + PADDING, layout.y[parent] + HEADER];
  return [Math.round(x - left - shiftX), Math.round(y - top - shiftY)];
}
