/** What is on the stage for one set of open groups: boxes in boxes, and edges lifted to what is visible. */
import type { OpenGroups } from "./folding";
import type { GraphModel } from "./graph";

export interface SceneItem {
  /** Stays the same while other groups are folded, and across graphs of the same network. */
  readonly key: string;
  /** The node, or for a closed group its face; -1 for an open group. */
  readonly node: number;
  readonly group: number; // -1 for a node
  readonly open: boolean;
  /** Position of the open group around it; -1 at the top. */
  readonly parent: number;
  readonly depth: number;
  readonly order: number;
}

export interface SceneEdge {
  readonly from: number;
  readonly to: number;
  /** Edges of the model that it stands for. */
  readonly edges: readonly number[];
}

export interface Scene {
  readonly model: GraphModel;
  /** Every group comes before what it contains. */
  readonly items: readonly SceneItem[];
  readonly edges: readonly SceneEdge[];
  /** Node -> the item that shows it: itself, or the outermost closed group around it. */
  readonly itemOfNode: Int32Array;
  readonly edgeBetween: ReadonlyMap<number, number>;
}

export const nodeKey = (name: string): string => `n:${name}`;
export const groupKey = (address: string): string => `g:${address}`;

export function buildScene(model: GraphModel, open: OpenGroups): Scene {
  const items: SceneItem[] = [];
  const itemOfNode = new Int32Array(model.nodes.length).fill(-1);

  const hide = (group: number, item: number): void => {
    for (const node of model.groups[group].nodes) itemOfNode[node] = item;
    for (const inner of model.groups[group].groups) hide(inner, item);
  };
  const visit = (group: number, parent: number, depth: number): void => {
    const { groups, nodes } = model.groups[group];
    const inside = [
      ...nodes.map((id) => ({ order: model.nodes[id].order, node: id, group: -1 })),
      ...groups.map((id) => ({ order: model.groups[id].order, node: -1, group: id })),
    ].sort((a, b) => a.order - b.order);
    for (const { order, node, group: inner } of inside) {
      const place = items.length;
      if (inner < 0) {
        items.push({ key: nodeKey(model.nodes[node].name), node, group: -1, open: false, parent, depth, order });
        itemOfNode[node] = place;
        continue;
      }
      const { address, face } = model.groups[inner];
      const isOpen = open.has(address);
      const shown = isOpen ? -1 : face;
      items.push({ key: groupKey(address), node: shown, group: inner, open: isOpen, parent, depth, order });
      if (isOpen) visit(inner, place, depth + 1);
      else hide(inner, place);
    }
  };
  visit(0, -1, 0);
  return { model, items, itemOfNode, ...liftEdges(model, itemOfNode, items.length) };
}

export const pairKey = (from: number, to: number): number => from * 0x200000 + to;

function liftEdges(model: GraphModel, itemOfNode: Int32Array, count: number) {
  if (count >= 0x200000) throw new RangeError(`${count} boxes are more than one picture can hold`);
  const lifted: { from: number; to: number; edges: number[] }[] = [];
  const edgeBetween = new Map<number, number>();
  model.edges.forEach((edge, i) => {
    const from = itemOfNode[edge.from];
    const to = itemOfNode[edge.to];
    if (from === to) return; // inside one closed box
    const key = pairKey(from, to);
    const known = edgeBetween.get(key);
    if (known !== undefined) lifted[known].edges.push(i);
    else edgeBetween.set(key, lifted.push({ from, to, edges: [i] }) - 1);
  });
  return { edges: lifted, edgeBetween };
}
