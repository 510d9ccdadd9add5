/** How large boxes are. Sizes come in a few steps, so that equal structures get equal layouts whatever their names. */
import type { GraphNode } from "../model/graph";
import type { Scene, SceneItem } from "../model/scene";
import { shapeText } from "../model/names";
import { PADDING, type LayoutRequest } from "./types";

export const NODE_HEIGHT = 40;
/** Height of the strip of cells in boxes that hold several tensors. */
export const STRIP = 9;

const WIDTH_STEPS = [96, 120, 144, 168, 192, 216];
const LETTER = 6.6; // of a label, on average; long ones are cut where they are drawn
const DIGIT = 6.4; // of a shape, which is set in a fixed width
const AROUND = 26;
const VALUE_DIGITS = 8; // beside the shape, while colours show a statistic

export function boxWidth(label: string, detail: string): number {
  const wanted = Math.max(label.length * LETTER, (detail.length + VALUE_DIGITS) * DIGIT) + AROUND;
  return WIDTH_STEPS.find((step) => step >= wanted) ?? WIDTH_STEPS[WIDTH_STEPS.length - 1];
}

/** The second line of a box. */
export function detailOf(node: GraphNode): string {
  const parts = [shapeText(node.shape)];
  if (node.roles.length > 1) parts.push(`${node.roles.length} roles`);
  if (node.passes > 1) parts.push(`×${node.passes}`);
  return parts.filter(Boolean).join(" · ");
}

/** The second line of a closed group is that of what it returns. */
export function groupDetail(scene: Scene, item: SceneItem): string {
  return shapeText(scene.model.nodes[item.node]?.shape);
}

/** In its corner: how much is inside, and that it opens. */
export function groupMark(scene: Scene, item: SceneItem): string {
  return `${scene.model.groups[item.group].size} ▸`;
}

export function hasStrip(scene: Scene, item: SceneItem): boolean {
  if (item.open) return false;
  return item.group >= 0 || scene.model.nodes[item.node].records.length > 1;
}

/** Pins by the key of a scene item. */
export type Pins = Readonly<Record<string, readonly [number, number]>>;

export function layoutRequest(scene: Scene, pins: Pins = {}): LayoutRequest {
  const { items, model } = scene;
  const width = new Float32Array(items.length);
  const height = new Float32Array(items.length);
  items.forEach((item, i) => {
    if (item.open) {
      width[i] = model.groups[item.group].label.length * LETTER + 40 + 2 * PADDING;
      return;
    }
    const [label, detail] =
      item.group >= 0
        ? [`${model.groups[item.group].label} ${groupMark(scene, item)}`, groupDetail(scene, item)]
        : [model.nodes[item.node].label, detailOf(model.nodes[item.node])];
    width[i] = boxWidth(label, detail);
    height[i] = NODE_HEIGHT + (hasStrip(scene, item) ? STRIP : 0);
  });
  return {
    parent: Int32Array.from(items, (item) => item.parent),
    open: Uint8Array.from(items, (item) => (item.open ? 1 : 0)),
    width,
    height,
    edges: edgeArray(scene),
    pins: pinArray(scene, pins),
  };
}

function edgeArray({ edges }: Scene): Int32Array {
  const flat = new Int32Array(2 * edges.length);
  edges.forEach((edge, i) => {
    flat[2 * i] = edge.from;
    flat[2 * i + 1] = edge.to;
  });
  return flat;
}

function pinArray(scene: Scene, pins: Pins): Float32Array | null {
  if (Object.keys(pins).length === 0) return null;
  const places = new Float32Array(2 * scene.items.length).fill(NaN);
  scene.items.forEach((item, i) => {
    if (item.key in pins) places.set(pins[item.key], 2 * i);
  });
  return places;
}
