/** What is on the stage while some modules are open: boxes in boxes, edges between them, and where everything is. */
import type { PictureHead } from "../api/types";
import type { GraphModel } from "./graph";

/** Room that the server leaves between the border of an open module and what is in it (layout/compose.py). */
export const HEADER = 22;
export const PADDING = 10;
/** Height of the strip of cells in boxes that hold several tensors (layout/sizes.py). */
export const STRIP = 9;

const [IS_OPEN, IS_CHIP, IS_SHARED, IS_WIDE] = [1, 2, 4, 8];

export interface SceneItem {
  /** Stays the same while other modules are folded, and across graphs of the same network. */
  readonly key: string;
  /** The node, or for a closed module the one that stands for it; -1 for an open module. */
  readonly node: number;
  /** Its tensor; -1 for an open module. */
  readonly tensor: number;
  /** Of a module, or of the first of several; empty for a node. */
  readonly address: string;
  /** How many equal modules it stands for. */
  readonly members: number;
  readonly open: boolean;
  /** A parameter beside what reads it; `isShared` if it stands beside others, too. */
  readonly isChip: boolean;
  readonly isShared: boolean;
  /** It has a row for itself, and room for its history. */
  readonly isWide: boolean;
  /** Position of the open module around it; -1 at the top. */
  readonly parent: number;
  readonly depth: number;
  readonly label: string;
  readonly detail: string;
  /** Nodes inside of a module. */
  readonly size: number;
  /** Tensors of the model that it shows itself. */
  readonly tensors: number;
}

export interface SceneEdge {
  readonly from: number;
  readonly to: number;
}

export interface Scene {
  readonly model: GraphModel;
  /** Every module comes before what it contains. */
  readonly items: readonly SceneItem[];
  readonly edges: readonly SceneEdge[];
  /** Tensor -> the item that shows it; -1 for parameters that stand nowhere. */
  readonly itemOfTensor: Int32Array;
  /** Node -> the item that shows its first tensor. */
  readonly itemOfNode: Int32Array;
  /** Edges by `pairKey` of their ends. */
  readonly edgeBetween: ReadonlyMap<number, number>;
}

export interface Layout {
  /** Upper left corner and size of every box, and where edges enter it. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: Float32Array;
  readonly height: Float32Array;
  readonly entry: Float32Array;
  /** Path of edge i: x, y, x, y, … at starts[i] … starts[i + 1]. */
  readonly points: Float32Array;
  readonly starts: Int32Array;
  /** 1 for edges against the flow. */
  readonly back: Int32Array;
  readonly totalWidth: number;
  readonly totalHeight: number;
}

/** A scene with a place for everything in it. */
export interface Picture {
  readonly scene: Scene;
  readonly layout: Layout;
}

/** The server's answer (api/pictures.ts). */
export interface PictureNumbers extends Omit<Layout, "totalWidth" | "totalHeight"> {
  readonly head: PictureHead;
  readonly parent: Int32Array;
  readonly tensor: Int32Array;
  readonly address: Int32Array;
  readonly flags: Int32Array;
  readonly members: Int32Array;
  readonly size: Int32Array;
  readonly boxOfTensor: Int32Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

export const nodeKey = (name: string): string => `n:${name}`;
export const groupKey = (address: string): string => `g:${address}`;
export const pairKey = (from: number, to: number): number => from * 0x200000 + to;

export function pictureOf(model: GraphModel, numbers: PictureNumbers): Picture {
  const { head, boxOfTensor } = numbers;
  const counts = new Int32Array(head.boxes);
  for (const box of boxOfTensor) if (box >= 0) counts[box]++;
  const items: SceneItem[] = [];
  for (let i = 0; i < head.boxes; i++) items.push(itemOf(model, numbers, items, counts, i));
  const edges = Array.from(numbers.from, (from, i) => ({ from, to: numbers.to[i] }));
  const itemOfNode = Int32Array.from(model.nodes, ({ records }) => boxOfTensor[records[0]]);
  const edgeBetween = new Map(edges.map(({ from, to }, i) => [pairKey(from, to), i]));
  // A shared parameter has several chips, and the model knows one node.
  edges.forEach(({ from, to }, i) => {
    const chip = items[from];
    if (chip.isShared && chip.isChip) edgeBetween.set(pairKey(itemOfNode[chip.node], to), i);
  });
  const { x, y, width, height, entry, points, starts, back } = numbers;
  return {
    scene: { model, items, edges, itemOfTensor: boxOfTensor, itemOfNode, edgeBetween },
    layout: {
      x, y, width, height, entry, points, starts, back, totalWidth: head.width, totalHeight: head.height,
    },
  };
}

function itemOf(
  model: GraphModel, numbers: PictureNumbers, before: readonly SceneItem[], counts: Int32Array, i: number,
): SceneItem {
  const { head, flags } = numbers;
  const tensor = numbers.tensor[i];
  const parent = numbers.parent[i];
  const node = tensor >= 0 ? model.nodeOfRecord[tensor] : -1;
  const address = numbers.address[i] < 0 ? "" : head.addresses[numbers.address[i]];
  const isChip = (flags[i] & IS_CHIP) > 0;
  return {
    key: address ? groupKey(address) : keyOfNode(model, tensor, isChip ? i : -1),
    node, tensor, address, parent, isChip,
    members: numbers.members[i],
    open: (flags[i] & IS_OPEN) > 0,
    isShared: (flags[i] & IS_SHARED) > 0,
    isWide: (flags[i] & IS_WIDE) > 0,
    depth: parent < 0 ? 0 : before[parent].depth + 1,
    label: head.labels[i],
    detail: head.details[i],
    size: numbers.size[i],
    tensors: counts[i],
  };
}

/** Calls of one module at several places, and chips of one parameter, are boxes of their own. */
function keyOfNode(model: GraphModel, tensor: number, chip: number): string {
  const { node, pass } = model.source.nodes[tensor];
  const call = pass > 1 ? ` ${pass}` : "";
  return `${nodeKey(node)}${call}${chip < 0 ? "" : ` chip ${chip}`}`;
}

/** Closed modules, and nodes of several tensors, show each of them as a cell; a wide module shows its history. */
export const hasStrip = ({ open, isChip, isWide, address, tensors }: SceneItem): boolean =>
  !open && !isChip && (address !== "" ? !isWide : tensors > 1);

/** In the corner of a closed module: how much is inside, and that it opens. */
export const moduleMark = ({ members, size }: SceneItem): string => `${members > 1 ? `×${members}` : size} ▸`;

/** The pin that puts an item to a place of the picture: measured inside of the box around it, as whole numbers. */
export function pinAt(
  { scene, layout }: Picture, pins: Readonly<Record<string, readonly [number, number]>>, item: number, x: number,
  y: number,
): [number, number] {
  const { parent } = scene.items[item];
  // One that was put beyond the corner has shifted all others (layout/pins.py).
  let [shiftX, shiftY] = [0, 0];
  for (const other of scene.items) {
    const pin = other.parent === parent ? pins[other.key] : undefined;
    if (pin) [shiftX, shiftY] = [Math.max(shiftX, -pin[0]), Math.max(shiftY, -pin[1])];
  }
  const [left, top] = parent < 0 ? [0, 0] : [layout.x[parent] + PADDING, layout.y[parent] + HEADER];
  return [Math.round(x - left - shiftX), Math.round(y - top - shiftY)];
}
