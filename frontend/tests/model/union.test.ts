import { expect, test } from "vitest";
import { recurrentNetwork } from "../../gallery/networks";
import { pictureNow } from "../../src/layout/client";
import { openAll } from "../../src/model/folding";
import { buildGraph } from "../../src/model/graph";
import { buildScene } from "../../src/model/scene";
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
});

test("nothing moves when the number of passes changes", () => {
  const places = [6, 12].map((steps) => {
    const model = buildGraph(recurrentNetwork(steps));
    const { layout, scene } = pictureNow(buildScene(model, openAll(model)));
    return scene.items.map((item, i) => [item.key, layout.x[i], layout.y[i]]);
  });
  expect(places[0]).toEqual(places[1]);
});
