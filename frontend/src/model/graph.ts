/**
 * The graph as it is looked at: one node per name, with its roles and passes inside, nested into groups.
 *
 *     recorded tensors (node, role, pass) ─► nodes by name ─► groups by module ─► edges between nodes
 *
 * Everything is addressed by position: records as the server sent them, nodes and groups as they stand here.
 */
import { commonAddress, prefixes, relativeName, withType } from "./names";
import { asKind, isStored, type GraphSource, type Kind } from "./source";
import { growTree, type Branch } from "./tree";

export interface GraphNode {
  readonly id: number;
  readonly name: string;
  readonly label: string;
  readonly kind: Kind;
  /** Positions of its tensors in the source, in the order in which they came to be. */
  readonly records: readonly number[];
  readonly roles: readonly string[];
  readonly passes: number;
  readonly shape: readonly number[] | null;
  readonly type: string;
  readonly source: string;
  readonly group: number;
  /** Moment of first use: a parameter stands just before the one that reads it. */
  readonly order: number;
  /** A pass feeds a later pass of the same node. */
  readonly recurrent: boolean;
}

export interface GraphGroup {
  readonly id: number;
  readonly address: string;
  readonly label: string;
  /** Class of the module, if known. */
  readonly type: string;
  readonly parent: number; // -1 for the root, which is group 0
  readonly groups: readonly number[];
  readonly nodes: readonly number[];
  /** Nodes inside, at any depth. */
  readonly size: number;
  /** The node that stands for the group while it is closed: what the module returns, else what is computed last. */
  readonly face: number;
  readonly order: number;
}

export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  /** Pairs of records, flat: from, to, from, to, … */
  readonly links: readonly number[];
}

export interface GraphModel {
  readonly source: GraphSource;
  readonly nodes: readonly GraphNode[];
  readonly groups: readonly GraphGroup[];
  readonly edges: readonly GraphEdge[];
  /** For each node, the edges that leave and that enter it (positions in `edges`). */
  readonly leaving: readonly (readonly number[])[];
  readonly entering: readonly (readonly number[])[];
  readonly nodeOfRecord: Uint32Array;
  readonly byName: ReadonlyMap<string, number>;
}

export interface GraphOptions {
  /** Module address -> class name. */
  readonly moduleTypes?: Readonly<Record<string, string>>;
  /** Node name or group address -> what the user calls it. */
  readonly renames?: Readonly<Record<string, string>>;
  /** Prefixes of names that the user wants in a box of their own. */
  readonly groups?: readonly string[];
  /** Of each tensor of the source the boxes around it, outermost first. Without it they follow from its module. */
  readonly paths?: readonly (readonly string[])[] | undefined;
}

export function buildGraph(source: GraphSource, options: GraphOptions = {}): GraphModel {
  const { byName, records, nodeOfRecord } = gatherNames(source);
  const { edges, recurrent } = gatherEdges(source, nodeOfRecord);
  const kinds = records.map((list) => asKind(source.nodes[list[0]].kind));
  const orders = ordersOf(records, kinds, edges);
  const pathOf = (list: readonly number[]): readonly string[] =>
    options.paths?.[list[0]] ?? prefixes(homeOf(source, list));
  const names = [...byName.keys()];
  const tree = growTree(names.map((name, node) => ({ node, name, path: pathOf(records[node]) })), options.groups ?? []);
  const { groups, groupOf, moduleOf } = numberGroups(tree, names, kinds, orders, options);

  const nodes = names.map((name, id): GraphNode => {
    const first = source.nodes[records[id][0]];
    const described = records[id].map((r) => source.nodes[r]);
    const type = first.type ?? "";
    const inside = relativeName(name, moduleOf[id]);
    return {
      id,
      name,
      label: options.renames?.[name] ?? (inside && name === moduleOf[id] ? "output" : withType(inside, type)),
      kind: kinds[id],
      records: records[id],
      roles: [...new Set(described.map((d) => d.role))],
      passes: new Set(described.map((d) => d.pass)).size,
      shape: first.shape ?? null,
      type,
      source: first.source,
      group: groupOf[id],
      order: orders[id],
      recurrent: recurrent.has(id),
    };
  });
  return { source, nodes, groups, edges, ...adjacency(nodes.length, edges), nodeOfRecord, byName };
}

function gatherNames(source: GraphSource) {
  const byName = new Map<string, number>();
  const records: number[][] = [];
  const nodeOfRecord = new Uint32Array(source.nodes.length);
  source.nodes.forEach((record, i) => {
    let id = byName.get(record.node);
    if (id === undefined) {
      id = records.push([]) - 1;
      byName.set(record.node, id);
    }
    records[id].push(i);
    nodeOfRecord[i] = id;
  });
  return { byName, records, nodeOfRecord };
}

function gatherEdges(source: GraphSource, nodeOfRecord: Uint32Array) {
  const found = new Map<number, { from: number; to: number; links: number[] }>();
  const recurrent = new Set<number>();
  const count = nodeOfRecord.length;
  for (const [a, b] of source.edges) {
    const from = nodeOfRecord[a];
    const to = nodeOfRecord[b];
    if (from === to) {
      recurrent.add(from);
      continue;
    }
    const key = from * count + to;
    const edge = found.get(key);
    if (edge) edge.links.push(a, b);
    else found.set(key, { from, to, links: [a, b] });
  }
  return { edges: [...found.values()], recurrent };
}

function adjacency(count: number, edges: readonly GraphEdge[]) {
  const leaving: number[][] = Array.from({ length: count }, () => []);
  const entering: number[][] = Array.from({ length: count }, () => []);
  edges.forEach((edge, i) => {
    leaving[edge.from].push(i);
    entering[edge.to].push(i);
  });
  return { leaving, entering };
}

/** The recorder lists parameters first; in the picture they belong beside whoever reads them. */
function ordersOf(records: readonly number[][], kinds: readonly Kind[], edges: readonly GraphEdge[]): number[] {
  const orders = records.map((list) => list[0]);
  const readAt = new Map<number, number>();
  for (const { from, to } of edges) {
    if (isStored(kinds[from]) && !isStored(kinds[to])) {
      readAt.set(from, Math.min(readAt.get(from) ?? Infinity, orders[to]));
    }
  }
  for (const [node, at] of readAt) orders[node] = at - 0.5;
  return orders;
}

/** Where a node lives: its module, or for a tag the module that was running when it was made. */
function homeOf(source: GraphSource, records: readonly number[]): string {
  const homes = records.map((r) => source.nodes[r].module || source.nodes[r].modules?.at(-1) || "");
  return homes.reduce(commonAddress);
}

function numberGroups(
  tree: Branch,
  names: readonly string[],
  kinds: readonly Kind[],
  orders: readonly number[],
  options: GraphOptions,
) {
  const groups: GraphGroup[] = [];
  const groupOf: number[] = [];
  const moduleOf: string[] = [];

  function visit(branch: Branch, parent: number, around: string): GraphGroup {
    const id = groups.length;
    groups.push(undefined as never); // its number is needed inside, its contents are known after
    for (const node of branch.nodes) {
      groupOf[node] = id;
      moduleOf[node] = branch.module;
    }
    const inner = [...branch.branches.values()].map((b) => visit(b, id, branch.module));
    const nodes = [...branch.nodes].sort((a, b) => orders[a] - orders[b]);
    const type = options.moduleTypes?.[branch.address] ?? "";
    const plain = branch.address.includes("/") ? branch.address.split("/")[1] : relativeName(branch.address, around);
    groups[id] = {
      id,
      address: branch.address,
      label: options.renames?.[branch.address] ?? withType(plain, type),
      type,
      parent,
      groups: inner.sort((a, b) => a.order - b.order).map((g) => g.id),
      nodes,
      size: nodes.length + inner.reduce((sum, g) => sum + g.size, 0),
      face: faceOf(branch, nodes, inner, names, kinds, orders),
      order: orderOf(nodes, inner, kinds, orders),
    };
    return groups[id];
  }
  visit(tree, -1, "");
  return { groups, groupOf, moduleOf };
}

function faceOf(
  branch: Branch,
  nodes: readonly number[],
  inner: readonly GraphGroup[],
  names: readonly string[],
  kinds: readonly Kind[],
  orders: readonly number[],
): number {
  const candidates = [...nodes, ...inner.map((g) => g.face)];
  if (candidates.length === 0) return -1; // only the root of an empty graph
  const returned = candidates.find((n) => names[n] === branch.address);
  if (returned !== undefined) return returned;
  const rank = (n: number): number => (isStored(kinds[n]) ? -1e9 : 0) + orders[n];
  return candidates.reduce((best, n) => (rank(n) > rank(best) ? n : best));
}

function orderOf(
  nodes: readonly number[],
  inner: readonly GraphGroup[],
  kinds: readonly Kind[],
  orders: readonly number[],
): number {
  const computed = nodes.filter((n) => !isStored(kinds[n]));
  const all = [...(computed.length ? computed : nodes).map((n) => orders[n]), ...inner.map((g) => g.order)];
  return all.reduce((least, order) => Math.min(least, order), Infinity);
}
