import { expect, test } from "vitest";
import { recurrentNetwork } from "../networks";
import { unionGraphs } from "../../src/model/union";

test("short and long sequences share one graph, and each knows its own tensors in it", () => {
  const [short, long] = [recurrentNetwork(5), recurrentNetwork(12)];
  const { graph, places } = unionGraphs([short, long]);
  expect(graph.nodes).toHaveLength(long.nodes.length);
  for (const source of [short, long]) {
    const place = places.get(source.hash) as Uint32Array;
    source.nodes.forEach((node, i) => {
      const { node: name, role, pass } = graph.nodes[place[i]];
      expect([name, role, pass]).toEqual([node.node, node.role, node.pass]);
    });
    const edges = new Set(graph.edges.map(([a, b]) => `${a}>${b}`));
    for (const [a, b] of source.edges) expect(edges.has(`${place[a]}>${place[b]}`)).toBe(true);
  }
});

test("one graph alone stays itself", () => {
  const source = recurrentNetwork(5);
  expect(unionGraphs([source]).graph).toBe(source);
  expect(unionGraphs([source]).hashes).toEqual([source.hash]);
});
