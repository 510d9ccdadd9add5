/** Short ways to a model, a scene and a picture, shared by the tests. */
import { pictureNow, type Picture } from "../src/layout/client";
import { openAll } from "../src/model/folding";
import { buildGraph, type GraphModel } from "../src/model/graph";
import { buildScene, type Scene } from "../src/model/scene";
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

export const pictureOf = (source: GraphSource, open?: ReadonlySet<string>): Picture => {
  const model = buildGraph(source);
  return pictureNow(buildScene(model, open ?? openAll(model)));
};

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
