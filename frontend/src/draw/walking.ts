/** Walking through the graph with the arrow keys. */
import type { Picture } from "../model/scene";

export type Direction = "left" | "right" | "up" | "down";

/**
 * The item to go to, or -1. Down and up follow edges to what is computed from here and to what this is computed from,
 * nearest sideways first; left and right go to the next box in the same row, or to the nearest one at all.
 */
export function walk(picture: Picture, from: number, direction: Direction): number {
  if (from < 0) return picture.scene.items.findIndex((item) => !item.open);
  return direction === "up" || direction === "down"
    ? alongEdge(picture, from, direction)
    : toNeighbour(picture, from, direction);
}

function alongEdge({ scene, layout }: Picture, from: number, direction: "up" | "down"): number {
  const ends: number[] = [];
  for (const edge of scene.edges) {
    if (direction === "down" && edge.from === from) ends.push(edge.to);
    if (direction === "up" && edge.to === from) ends.push(edge.from);
  }
  const here = middle(layout, from);
  return nearest(ends, (item) => {
    const there = middle(layout, item);
    // A box that lies against the direction of the key (a recurrence) is the last choice.
    const forward = direction === "down" ? there.y - here.y : here.y - there.y;
    const isChip = scene.items[item].isChip;
    return Math.abs(there.x - here.x) + Math.abs(forward) / 2 + (forward > 0 || isChip ? 0 : 1e6) + (isChip ? 1e5 : 0);
  });
}

function toNeighbour({ scene, layout }: Picture, from: number, direction: "left" | "right"): number {
  const here = middle(layout, from);
  const candidates: number[] = [];
  scene.items.forEach((item, i) => {
    const ahead = (middle(layout, i).x - here.x) * (direction === "right" ? 1 : -1);
    if (i !== from && !item.open && ahead > 1) candidates.push(i);
  });
  return nearest(candidates, (item) => {
    const there = middle(layout, item);
    const overlap =
      Math.min(layout.y[from] + layout.height[from], layout.y[item] + layout.height[item]) -
      Math.max(layout.y[from], layout.y[item]);
    return Math.abs(there.x - here.x) + (overlap > 0 ? 0 : 200 + 2 * Math.abs(there.y - here.y));
  });
}

function middle(layout: Picture["layout"], item: number): { x: number; y: number } {
  return { x: layout.x[item] + layout.width[item] / 2, y: layout.y[item] + layout.height[item] / 2 };
}

function nearest(items: readonly number[], cost: (item: number) => number): number {
  let best = -1;
  let least = Infinity;
  for (const item of items) {
    const c = cost(item);
    if (c < least) [best, least] = [item, c];
  }
  return best;
}
