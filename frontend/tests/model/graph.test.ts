import { expect, test } from "vitest";
import { recurrentNetwork, tinyNetwork, transformer } from "../networks";
import { buildGraph } from "../../src/model/graph";
import { nodeNamed, sketch } from "../scenes";

test("one node per name, with its roles and passes", () => {
  const model = buildGraph(recurrentNetwork(12, 5));
  const sums = model.nodes[nodeNamed(model, "partial sums")];
  expect(sums.records).toHaveLength(12);
  expect(sums.roles).toEqual(["sequence 1", "sequence 2", "sequence 3", "sequence 4", "sequence 5"]);
  expect(sums.passes).toBe(3);
  expect([...model.nodeOfRecord].filter((node) => node === sums.id)).toHaveLength(12);
});

test("a pass that feeds the next one of the same node makes it recurrent, not an edge to itself", () => {
  const model = buildGraph(recurrentNetwork());
  expect(model.nodes[nodeNamed(model, "memory.state")].recurrent).toBe(true);
  expect(model.nodes[nodeNamed(model, "memory.gate")].recurrent).toBe(false);
  expect(model.edges.every((edge) => edge.from !== edge.to)).toBe(true);
});

test("edges between the same nodes are one edge with all its links", () => {
  const model = buildGraph(recurrentNetwork(12));
  const [from, to] = [nodeNamed(model, "memory.gate"), nodeNamed(model, "memory.state")];
  const edge = model.edges.find((e) => e.from === from && e.to === to);
  expect(edge?.links).toHaveLength(2 * 12);
  expect(model.leaving[from]).toContain(model.edges.indexOf(edge as never));
  expect(model.entering[to]).toContain(model.edges.indexOf(edge as never));
});

test("modules nest, a module of one tensor is no group, a chain of lone groups is one", () => {
  const model = buildGraph(
    sketch([
      "net.body.a.weight parameter net.body.a", "net.body.a computed net.body.a", "net.body.relu computed net.body.relu",
    ]),
  );
  expect(model.groups.map((group) => group.address)).toEqual(["", "net.body", "net.body.a"]);
  expect(model.groups[1].label).toBe("net.body");
  expect(model.groups[2].label).toBe("a");
  expect(model.nodes.map((node) => node.label)).toEqual(["weight", "output", "relu"]);
});

test("the children of a Sequential are called by number and operation", () => {
  const model = buildGraph(sketch(["net.0 computed net.0", "net.1 computed net.1"]));
  expect(model.nodes.map((node) => node.label)).toEqual(["0 · op", "1 · op"]);
});

test("tags live in the module that was running", () => {
  const model = buildGraph(recurrentNetwork());
  const { group } = model.nodes[nodeNamed(model, "partial sums")];
  expect(model.groups[group].address).toBe("memory");
});

test("the face of a group is what its module returns, else what is computed last", () => {
  const model = buildGraph(transformer(2));
  const face = (address: string): string => {
    const group = model.groups.find((g) => g.address === address);
    return model.nodes[group?.face ?? -1].name;
  };
  expect(face("transformer.h.1.attn")).toBe("transformer.h.1.attn");
  expect(face("transformer.h")).toBe("transformer.h.1");
});

test("parameters stand just before whoever reads them", () => {
  const source = sketch(["b.weight parameter b", "a", "b computed b"], [[0, 2], [1, 2]]);
  const model = buildGraph(source);
  const order = (name: string): number => model.nodes[nodeNamed(model, name)].order;
  expect(order("a")).toBeLessThan(order("b.weight"));
  expect(order("b.weight")).toBeLessThan(order("b"));
});

test("renames and groups by prefix", () => {
  const source = sketch(["op_1", "op_2", "other"], [[0, 1], [1, 2]]);
  const model = buildGraph(source, { groups: ["op_"], renames: { other: "the rest" } });
  expect(model.groups.map((group) => group.label)).toEqual(["", "op_…"]);
  expect(model.nodes[nodeNamed(model, "other")].label).toBe("the rest");
});

test("a graph without anything, and an unknown kind", () => {
  expect(buildGraph(sketch([])).nodes).toEqual([]);
  expect(buildGraph(sketch(["x quantised"])).nodes[0].kind).toBe("computed");
  expect(buildGraph(tinyNetwork()).groups).toHaveLength(1);
});
