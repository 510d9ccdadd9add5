import { expect, test } from "vitest";
import { recurrentNetwork, transformer } from "../../gallery/networks";
import { dependenciesOf, recordFor } from "../../src/model/dependencies";
import { defaultOpen, groupsAround, openAll, openToDepth, reveal, toggle } from "../../src/model/folding";
import { buildGraph } from "../../src/model/graph";
import { buildScene, pairKey } from "../../src/model/scene";
import { itemNamed, nodeNamed, sketch } from "../scenes";

test("a closed group hides what is inside and takes its edges", () => {
  const model = buildGraph(recurrentNetwork());
  const scene = buildScene(model, new Set(["encoder"]));
  const memory = itemNamed(scene, "g:memory");
  expect(scene.itemOfNode[nodeNamed(model, "memory.state")]).toBe(memory);
  const norm = itemNamed(scene, "g:encoder.norm");
  const output = itemNamed(scene, "n:encoder");
  expect(scene.edgeBetween.has(pairKey(norm, output))).toBe(true);
  expect(scene.edgeBetween.has(pairKey(output, memory))).toBe(true);
});

test("lifted edges are those of the model, each exactly once", () => {
  const model = buildGraph(transformer(3));
  for (const open of [new Set<string>(), defaultOpen(model), openAll(model)]) {
    const scene = buildScene(model, open);
    const lifted = scene.edges.flatMap((edge) => edge.edges);
    const inside = model.edges.filter((e) => scene.itemOfNode[e.from] === scene.itemOfNode[e.to]).length;
    expect(new Set(lifted).size).toBe(lifted.length);
    expect(lifted.length + inside).toBe(model.edges.length);
  }
});

test("groups come before what they contain, and every node is shown by something", () => {
  const scene = buildScene(buildGraph(transformer(3)), openAll(buildGraph(transformer(3))));
  scene.items.forEach((item, i) => expect(item.parent).toBeLessThan(i));
  expect([...scene.itemOfNode].every((item) => item >= 0)).toBe(true);
});

test("what is open at first fits on a screen and treats equal blocks alike", () => {
  const model = buildGraph(transformer(12));
  const open = defaultOpen(model);
  expect([...open].sort()).toEqual(["transformer", "transformer.h"]);
  expect(buildScene(model, open).items.filter((item) => !item.open).length).toBeLessThanOrEqual(28);
  expect(defaultOpen(buildGraph(transformer(120)))).toEqual(new Set(["transformer"]));
});

test("a small network is open down to its weights", () => {
  const model = buildGraph(sketch(["l.weight parameter l", "l computed l", "loss loss"], [[0, 1], [1, 2]]));
  expect(defaultOpen(model)).toEqual(new Set(["l"]));
});

test("folding: depth, reveal, toggle", () => {
  const model = buildGraph(transformer(2));
  expect(openToDepth(model, 1)).toEqual(new Set(["transformer", "lm_head"]));
  const deep = nodeNamed(model, "transformer.h.1.mlp.c_fc.weight");
  expect(groupsAround(model, deep)).toEqual([
    "transformer", "transformer.h", "transformer.h.1", "transformer.h.1.mlp", "transformer.h.1.mlp.c_fc",
  ]);
  const open = reveal(model, new Set(), deep);
  expect(buildScene(model, open).items.some((item) => item.node === deep && item.group < 0)).toBe(true);
  const closed = toggle(model, open, "transformer.h");
  expect(closed).toEqual(new Set(["transformer"]));
  expect(toggle(model, closed, "transformer.h")).toEqual(new Set(["transformer", "transformer.h"]));
});

test("arrows of the selected tensor are strong, those of other roles weak", () => {
  const source = sketch(
    ["in input", "s computed memory a", "s computed memory b", "out1", "out2"],
    [[0, 1], [0, 2], [1, 3], [2, 4]],
  );
  const model = buildGraph(source);
  const scene = buildScene(model, openAll(model));
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
  const scene = buildScene(model, new Set());
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
