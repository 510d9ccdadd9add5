import { expect, test } from "vitest";
import { recurrentNetwork, transformer } from "../networks";
import { dependenciesOf, recordFor } from "../../src/model/dependencies";
import { groupsAround, toggle } from "../../src/model/folding";
import { buildGraph } from "../../src/model/graph";
import { hasStrip, moduleMark, pairKey, pictureOf, pinAt } from "../../src/model/scene";
import { itemNamed, nodeNamed, pictureOfModel, sketch } from "../scenes";

test("a closed group hides what is inside and takes its edges", () => {
  const model = buildGraph(recurrentNetwork());
  const scene = pictureOfModel(model, new Set(["encoder"])).scene;
  const memory = itemNamed(scene, "g:memory");
  expect(scene.itemOfNode[nodeNamed(model, "memory.state")]).toBe(memory);
  const norm = itemNamed(scene, "g:encoder.norm");
  const output = itemNamed(scene, "n:encoder");
  expect(scene.edgeBetween.has(pairKey(norm, output))).toBe(true);
  expect(scene.edgeBetween.has(pairKey(output, memory))).toBe(true);
});

test("an answer of the server becomes a scene: chips, stacks, calls of their own", () => {
  const model = buildGraph(sketch(
    ["w parameter", "act", "act", "h.0 computed h.0", "h.1 computed h.1", "loss loss"],
    [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [4, 5]],
  ));
  const whole = (...values: number[]): Int32Array => Int32Array.from(values);
  const floats = (...values: number[]): Float32Array => Float32Array.from(values);
  const { scene, layout } = pictureOf(model, {
    head: {
      boxes: 6, edges: 5, tensors: 6, points: 0, width: 50, height: 90, opened: [], addresses: ["h.0"],
      labels: ["w", "act", "w", "act:2", "0…1", "loss"], details: ["", "", "", "", "2×3", ""],
    },
    parent: whole(-1, -1, -1, -1, -1, -1), tensor: whole(0, 1, 0, 2, 3, 5), address: whole(-1, -1, -1, -1, 0, -1),
    flags: whole(6, 0, 6, 0, 0, 0), members: whole(0, 0, 0, 0, 2, 0), size: whole(0, 0, 0, 0, 2, 0),
    boxOfTensor: whole(0, 1, 3, 4, 4, 5), from: whole(0, 2, 1, 3, 4), to: whole(1, 3, 3, 4, 5), back: whole(0, 0, 0, 0, 0),
    starts: whole(0, 0, 0, 0, 0, 0), x: floats(), y: floats(), width: floats(), height: floats(), entry: floats(),
    points: floats(),
  });
  expect(scene.items.map(({ key }) => key)).toEqual(["n:w chip 0", "n:act", "n:w chip 2", "n:act 2", "g:h.0", "n:loss"]);
  expect(scene.items.map(hasStrip)).toEqual([false, false, false, false, true, false]);
  expect(moduleMark(scene.items[4])).toBe("×2 ▸");
  expect(layout.totalHeight).toBe(90);
  const arrows = dependenciesOf(scene, nodeNamed(model, "w"), 0).arrows;
  expect([...arrows.keys()].sort()).toEqual([0, 1]); // both chips of the shared parameter
  const call = dependenciesOf(scene, nodeNamed(model, "act"), 2).arrows;
  expect(call.get(3)).toBe(true);
});

test("closing a module closes what is inside", () => {
  const model = buildGraph(transformer(2));
  const deep = nodeNamed(model, "transformer.h.1.mlp.c_fc.weight");
  const around = groupsAround(model, deep);
  expect(around).toEqual([
    "transformer", "transformer.h", "transformer.h.1", "transformer.h.1.mlp", "transformer.h.1.mlp.c_fc",
  ]);
  const closed = toggle(model, new Set(around), "transformer.h");
  expect(closed).toEqual(new Set(["transformer"]));
  expect(toggle(model, closed, "transformer.h")).toEqual(new Set(["transformer", "transformer.h"]));
});

test("arrows of the selected tensor are strong, those of other roles weak", () => {
  const source = sketch(
    ["in input", "s computed memory a", "s computed memory b", "out1", "out2"],
    [[0, 1], [0, 2], [1, 3], [2, 4]],
  );
  const model = buildGraph(source);
  const scene = pictureOfModel(model).scene;
  const node = nodeNamed(model, "s");
  const arrow = (from: string, to: string, record: number): boolean | undefined => {
    const edge = scene.edgeBetween.get(pairKey(itemNamed(scene, from), itemNamed(scene, to))) as number;
    return dependenciesOf(scene, node, record).arrows.get(edge);
  };
  expect(arrow("n:in", "n:s", 1)).toBe(true);
  expect(arrow("n:s", "n:out1", 1)).toBe(true);
  expect(arrow("n:s", "n:out2", 1)).toBe(false);
  expect(arrow("n:s", "n:out2", 2)).toBe(true);
  expect(arrow("n:s", "n:out2", -1)).toBe(true);
});

test("a side without any edge is marked", () => {
  const model = buildGraph(sketch(["a input", "b", "c"], [[0, 1], [1, 2]]));
  const scene = pictureOfModel(model, new Set()).scene;
  const sides = [0, 1, 2].map((node) => {
    const { startsHere, endsHere } = dependenciesOf(scene, node, node);
    return [startsHere, endsHere];
  });
  expect(sides).toEqual([[true, false], [false, false], [false, true]]);
  expect(dependenciesOf(scene, -1, -1).arrows.size).toBe(0);
});

test("the tensor that answers to a role and a pass", () => {
  const model = buildGraph(recurrentNetwork(12, 5));
  const sums = nodeNamed(model, "partial sums");
  const described = (role: string | null, pass: number | null) => {
    const { role: r, pass: p } = model.source.nodes[recordFor(model, sums, role, pass)];
    return [r, p];
  };
  expect(described("sequence 2", 2)).toEqual(["sequence 2", 2]);
  expect(described("sequence 2", 99)).toEqual(["sequence 2", 3]);
  expect(described("no such role", 2)).toEqual(["sequence 1", 2]);
  expect(described(null, null)).toEqual(["sequence 1", 1]);
});

test("a pin is measured inside of the module around", () => {
  const model = buildGraph(recurrentNetwork());
  const picture = pictureOfModel(model);
  const { scene, layout } = picture;
  const item = scene.items.findIndex(({ parent }) => parent >= 0);
  const { parent, key } = scene.items[item];
  expect(pinAt(picture, {}, item, layout.x[parent] + 40, layout.y[parent] + 52)).toEqual([30, 30]);
  // One that was put beyond the corner has shifted all others.
  expect(pinAt(picture, { [key]: [-5, 0] }, item, layout.x[parent] + 40, layout.y[parent] + 52)).toEqual([25, 30]);
});
