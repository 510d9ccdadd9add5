/** Which boxes and edges are in view. */
import type { Layout, Scene } from "../model/scene";
import type { Rect } from "./camera";

/** Positions of items that touch the area, outer boxes first. Whole subtrees out of view are skipped at once. */
export function itemsIn(scene: Scene, layout: Layout, area: Rect): number[] {
  const found: number[] = [];
  const { items } = scene;
  const right = area.x + area.width;
  const bottom = area.y + area.height;
  for (let i = 0; i < items.length; ) {
    const inView =
      layout.x[i] <= right &&
      layout.y[i] <= bottom &&
      layout.x[i] + layout.width[i] >= area.x &&
      layout.y[i] + layout.height[i] >= area.y;
    if (inView) {
      found.push(i++);
      continue;
    }
    const { depth, open } = items[i++];
    if (open) while (i < items.length && items[i].depth > depth) i++;
  }
  return found;
}

/** Extents of every edge: left, top, right, bottom. Curves stay between the points that they join. */
export function edgeExtents(layout: Layout): Float32Array {
  const { points, starts } = layout;
  const count = starts.length - 1;
  const extents = new Float32Array(4 * count);
  for (let edge = 0; edge < count; edge++) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = starts[edge]; i < starts[edge + 1]; i += 2) {
      left = Math.min(left, points[i]);
      right = Math.max(right, points[i]);
      top = Math.min(top, points[i + 1]);
      bottom = Math.max(bottom, points[i + 1]);
    }
    extents.set([left, top, right, bottom], 4 * edge);
  }
  return extents;
}

export function edgesIn(extents: Float32Array, area: Rect): number[] {
  const found: number[] = [];
  const right = area.x + area.width;
  const bottom = area.y + area.height;
  for (let i = 0; i < extents.length; i += 4) {
    if (extents[i] <= right && extents[i + 1] <= bottom && extents[i + 2] >= area.x && extents[i + 3] >= area.y) {
      found.push(i / 4);
    }
  }
  return found;
}
