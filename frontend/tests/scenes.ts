/** Short ways to a model, a scene and a picture, shared by the tests. */
import type { OpenGroups } from "../src/model/folding";
import { buildGraph, type GraphModel } from "../src/model/graph";
import { pictureOf as placed, type Picture, type PictureNumbers, type Scene } from "../src/model/scene";
import type { GraphSource, GraphSourceEdge, GraphSourceNode } from "../src/model/source";

/** `"encoder.0.weight parameter encoder.0"`: name, kind, module; edges as pairs of positions. */
export function sketch(nodes: readonly string[], edges: readonly (readonly [number, number])[] = []): GraphSource {
  const passes = new Map<string, number>();
  const described = nodes.map((text): GraphSourceNode => {
    const [node, kind = "computed", module = "", role = ""] = text.split(" ");
    const pass = (passes.get(node + role) ?? 0) + 1;
    passes.set(node + role, pass);
    return { node, kind, module, role, pass, source: "", type: "op", shape: [2, 3] };
  });
  return { hash: nodes.join(), nodes: described, edges: edges.map(([a, b]): GraphSourceEdge => [a, b, ["0"]]) };
}

export const allModules = (model: GraphModel): Set<string> =>
  new Set(model.groups.slice(1).map(({ address }) => address));

export const pictureOf = (source: GraphSource, open?: OpenGroups): Picture => pictureOfModel(buildGraph(source), open);

export const pictureOfModel = (model: GraphModel, open: OpenGroups = allModules(model)): Picture =>
  placed(model, standIn(model, open));

const [WIDTH, HEIGHT, GAP, HEAD, PAD] = [144, 45, 40, 22, 10];

interface Box {
  readonly node: number;
  readonly group: number;
  readonly parent: number;
  readonly open: boolean;
}

/** In the place of the server: every box below the one before, edges from border to border. */
export function standIn(model: GraphModel, open: OpenGroups): PictureNumbers {
  const boxes: Box[] = [];
  const boxOfNode = new Int32Array(model.nodes.length);
  const hide = (group: number, box: number): void => {
    for (const node of model.groups[group].nodes) boxOfNode[node] = box;
    for (const inner of model.groups[group].groups) hide(inner, box);
  };
  const visit = (group: number, parent: number): void => {
    const inside = [
      ...model.groups[group].nodes.map((node) => ({ order: model.nodes[node].order, node, group: -1 })),
      ...model.groups[group].groups.map((inner) => ({ order: model.groups[inner].order, node: -1, group: inner })),
    ].sort((a, b) => a.order - b.order);
    for (const { node, group: inner } of inside) {
      const isOpen = inner >= 0 && open.has(model.groups[inner].address);
      const box = boxes.push({ node, group: inner, parent, open: isOpen }) - 1;
      if (node >= 0) boxOfNode[node] = box;
      else if (isOpen) visit(inner, box);
      else hide(inner, box);
    }
  };
  visit(0, -1);
  return numbersOf(model, boxes, boxOfNode, open);
}

function numbersOf(
  model: GraphModel, boxes: readonly Box[], boxOfNode: Int32Array, open: OpenGroups,
): PictureNumbers {
  const count = boxes.length;
  const places = { x: new Float32Array(count), y: new Float32Array(count) };
  const sizes = { width: new Float32Array(count).fill(WIDTH), height: new Float32Array(count).fill(HEIGHT) };
  const total = stack(boxes, places, sizes);
  const edges = new Map<string, [number, number]>();
  for (const { from, to } of model.edges) {
    const ends: [number, number] = [boxOfNode[from], boxOfNode[to]];
    if (ends[0] !== ends[1]) edges.set(ends.join(), ends);
  }
  const pairs = [...edges.values()];
  const entry = Float32Array.from(boxes, (_, i) => places.x[i] + sizes.width[i] / 2);
  const points = pairs.flatMap(([from, to]) => [
    entry[from], places.y[from] + sizes.height[from], entry[from] + 20, places.y[to] - 8, entry[to], places.y[to],
  ]);
  const whole = (values: readonly number[]): Int32Array => Int32Array.from(values);
  const ofGroup = <T>(read: (group: number) => T, other: (box: Box) => T): T[] =>
    boxes.map((box) => (box.group >= 0 ? read(box.group) : other(box)));
  return {
    head: {
      boxes: count, edges: pairs.length, tensors: model.source.nodes.length, points: points.length, ...total,
      opened: [...open], addresses: model.groups.map(({ address }) => address),
      labels: ofGroup((group) => model.groups[group].label, ({ node }) => model.nodes[node].label),
      details: ofGroup(() => "", () => "2×3"),
    },
    parent: whole(boxes.map(({ parent }) => parent)),
    tensor: whole(boxes.map(({ node, group, open: isOpen }) =>
      isOpen ? -1 : model.nodes[node >= 0 ? node : model.groups[group].face].records[0],
    )),
    address: whole(boxes.map(({ group }) => group)),
    flags: whole(boxes.map((box) => (box.open ? 1 : 0))),
    members: whole(boxes.map(({ group }) => (group >= 0 ? 1 : 0))),
    size: whole(ofGroup((group) => model.groups[group].size, () => 0)),
    boxOfTensor: Int32Array.from(model.nodeOfRecord, (node) => boxOfNode[node]),
    from: whole(pairs.map(([from]) => from)),
    to: whole(pairs.map(([, to]) => to)),
    back: whole(pairs.map(([from, to]) => Number(from > to))),
    starts: whole([...pairs, 0].map((_, i) => 6 * i)),
    ...places, ...sizes, entry, points: Float32Array.from(points),
  };
}

/** Fills in places and sizes; boxes come after what is around them. */
function stack(
  boxes: readonly Box[], { x, y }: { x: Float32Array; y: Float32Array },
  { width, height }: { width: Float32Array; height: Float32Array },
): { width: number; height: number } {
  const place = (parent: number, left: number, top: number): [number, number] => {
    let [right, below] = [left, top];
    boxes.forEach((box, i) => {
      if (box.parent !== parent) return;
      [x[i], y[i]] = [left, below];
      if (box.open) {
        const [innerRight, innerBelow] = place(i, left + PAD, below + HEAD);
        [width[i], height[i]] = [innerRight + PAD - left, innerBelow - GAP + PAD - below];
      }
      right = Math.max(right, left + width[i]);
      below += height[i] + GAP;
    });
    return [right, below];
  };
  const [right, below] = place(-1, 0, 0);
  return { width: right, height: below - GAP };
}

export const itemNamed = (scene: Scene, key: string): number => {
  const found = scene.items.findIndex((item) => item.key === key);
  if (found < 0) throw new Error(`no item ${key} among ${scene.items.map((item) => item.key).join(", ")}`);
  return found;
};

export const nodeNamed = (model: GraphModel, name: string): number => {
  const found = model.byName.get(name);
  if (found === undefined) throw new Error(`no node ${name}`);
  return found;
};
