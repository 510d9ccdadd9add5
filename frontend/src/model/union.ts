import type { GraphSource, GraphSourceEdge, GraphSourceNode } from "./source";

/** Several graphs as one, and for each of them which tensors of the union it has. */
export interface Union {
  readonly graph: GraphSource;
  /** Hash of a graph -> for each of its nodes, the position in the union. */
  readonly places: ReadonlyMap<string, Uint32Array>;
  /** Hashes in the order in which they were put together: the server does it in the same order. */
  readonly hashes: readonly string[];
}

export const recordKey = (node: string, role: string, pass: number): string => `${node}\u0000${role}\u0000${pass}`;

/**
 * Steps of different types have different graphs. Laying out their union keeps every box in its place while the
 * scrubber moves from a short sequence to a long one; what a step lacks is drawn faded instead of moving the rest.
 */
export function unionGraphs(graphs: readonly GraphSource[]): Union {
  const nodes: GraphSourceNode[] = [];
  const placeOf = new Map<string, number>();
  const edges = new Map<string, GraphSourceEdge>();
  const places = new Map<string, Uint32Array>();
  for (const graph of graphs) {
    const place = new Uint32Array(graph.nodes.length);
    graph.nodes.forEach((node, i) => {
      const key = recordKey(node.node, node.role, node.pass);
      let at = placeOf.get(key);
      if (at === undefined) {
        at = nodes.push(node) - 1;
        placeOf.set(key, at);
      }
      place[i] = at;
    });
    for (const [from, to, uses] of graph.edges) {
      const key = `${place[from]}>${place[to]}`;
      if (!edges.has(key)) edges.set(key, [place[from], place[to], uses]);
    }
    places.set(graph.hash, place);
  }
  const only = graphs.length === 1 ? graphs[0] : undefined;
  const hash = graphs.map((graph) => graph.hash).join("+");
  return { graph: only ?? { hash, nodes, edges: [...edges.values()] }, places, hashes: [...places.keys()] };
}
