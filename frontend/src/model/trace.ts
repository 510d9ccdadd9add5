/** A trace as the graph that the stage draws: operations or layers as nodes, with the boxes of the server. */
import type { TraceGraph } from "../api/types";
import { buildGraph, type GraphModel } from "./graph";
import { ABSENT, emptyHeat, HAS_INF, HAS_NAN, VALUE, type Heat } from "./heat";
import type { Scene } from "./scene";

export function traceModel(graph: TraceGraph): GraphModel {
  const { node, passNumber, kind, type, shape, source, sources, module, modules, edges } = graph;
  const paths: (readonly string[])[] = [];
  for (const { address, parent } of modules) paths.push([...(parent < 0 ? [] : paths[parent]), address]);
  const nodes = node.map((name, i) => ({
    node: name, role: "", pass: passNumber[i], kind: kind[i], module: "", modules: null,
    source: source[i] < 0 ? "" : sources[source[i]], type: type[i], shape: shape[i],
  }));
  const links = Array.from({ length: edges.length / 2 }, (_, i) => [edges[2 * i], edges[2 * i + 1], NONE] as const);
  return buildGraph(
    { hash: graph.rolled ? "rolled" : "", nodes, edges: links },
    {
      paths: module.map((place) => (place < 0 ? NONE : paths[place])),
      moduleTypes: Object.fromEntries(modules.map((each) => [each.address, each.type])),
      renames: Object.fromEntries(modules.map((each) => [each.address, each.label])),
    },
  );
}

const NONE: readonly string[] = [];

/** What colours can show. `isSum`: a closed module shows the sum of all that is inside. */
export interface TraceHeatKind {
  readonly name: string;
  readonly label: string;
  readonly scale: "log" | "linear" | "diverging";
  readonly isSum: boolean;
}

export const HEAT_KINDS: readonly TraceHeatKind[] = [
  { name: "seconds", label: "time", scale: "log", isSum: true },
  { name: "bytes", label: "memory", scale: "log", isSum: true },
  { name: "flops", label: "FLOPs", scale: "log", isSum: true },
  { name: "mean", label: "mean", scale: "diverging", isSum: false },
  { name: "std", label: "std", scale: "log", isSum: false },
  { name: "nans", label: "share of NaN", scale: "linear", isSum: false },
];

export interface Whole {
  readonly heat: Heat | null;
  readonly present: Uint8Array | null;
  /** Item -> place in both; -1: its tensor stands for it. */
  readonly whole: Int32Array;
}

/** Beside what is known of every tensor, what is known of every closed box: sums, and whether it holds a marked one. */
export function withBoxes(scene: Scene, heat: Heat | null, present: Uint8Array | null, isSum: boolean): Whole {
  const { items, itemOfTensor, model } = scene;
  const count = model.source.nodes.length;
  const sums = isSum && heat ? emptyHeat(items.length) : null;
  const marked = new Uint8Array(items.length);
  for (let record = 0; record < count; record++) {
    const item = itemOfTensor[record];
    if (item < 0) continue;
    if (present?.[record]) marked[item] = 1;
    if (sums && heat) add(sums, item, heat.values[record], heat.states[record]);
  }
  const whole = Int32Array.from(items, ({ open, address, isChip }, i) =>
    open || isChip || (!address && !sums) ? -1 : count + i);
  // What cannot be added up is that of the result.
  const face = (i: number): number => items[i].tensor;
  const boxes = heat && (sums ?? {
    values: Float64Array.from(items, (_, i) => (face(i) < 0 ? NaN : heat.values[face(i)])),
    states: Uint8Array.from(items, (_, i) => (face(i) < 0 ? ABSENT : heat.states[face(i)])),
  });
  return { heat: heat && boxes ? joined(heat, boxes) : null, present: present && marks(present, marked), whole };
}

function add(sums: Heat, item: number, value: number, state: number): void {
  if (state === ABSENT) return;
  const before = sums.states[item];
  sums.values[item] = before === ABSENT ? value : sums.values[item] + value;
  sums.states[item] = before === HAS_NAN || state === HAS_NAN ? HAS_NAN
    : before === HAS_INF || state === HAS_INF ? HAS_INF : VALUE;
}

const joined = (heat: Heat, boxes: Heat): Heat => {
  const values = new Float64Array(heat.values.length + boxes.values.length);
  values.set(heat.values);
  values.set(boxes.values, heat.values.length);
  return { ...heat, values, states: marks(heat.states, boxes.states) };
};

function marks(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]] as const;

/** 0.000023 -> 23 µs. */
export function secondsText(seconds: number): string {
  const [size, unit] = TIMES.find(([least]) => seconds >= least) ?? TIMES[TIMES.length - 1];
  return `${rounded(seconds / size)} ${unit}`;
}

export function bytesText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = bytes;
  let place = 0;
  for (; size >= 1024 && place < units.length - 1; place++) size /= 1024;
  return `${rounded(size)} ${units[place]}`;
}

export function countText(count: number): string {
  const units = ["", " K", " M", " G", " T"];
  let size = count;
  let place = 0;
  for (; size >= 1000 && place < units.length - 1; place++) size /= 1000;
  return `${rounded(size)}${units[place]}`;
}

/** Three digits, but never fewer than stand before the point. */
const rounded = (size: number): string =>
  size >= 100 ? String(Math.round(size)) : Number(size.toPrecision(3)).toString();
