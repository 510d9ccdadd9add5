/** One level as columns: who stands in which column, at which height, and where long edges pass the columns between. */
import { alignVertices } from "./align";
import { buildLayers } from "./layers";
import { orderColumns } from "./order";
import { rankBoxes } from "./ranks";
import { ROW_GAP } from "./types";

/** What is inside one open box, or at the top. Boxes are numbered in the order of their use. */
export interface LevelInput {
  readonly widths: readonly number[];
  readonly heights: readonly number[];
  /** Between boxes of this level, always from a lower to a higher number. */
  readonly edges: readonly (readonly [number, number])[];
  /** Boxes with an edge through the left border of the level, and through the right one. */
  readonly left: readonly number[];
  readonly right: readonly number[];
  /** Height on a box's border at which edges leave it to the left and right: its middle unless it is open. */
  readonly leftPort: readonly number[];
  readonly rightPort: readonly number[];
  /** x, y where the user put a box. */
  readonly pins: readonly (readonly [number, number] | null)[];
  /** What the title of the box around needs. */
  readonly leastWidth: number;
}

/** Heights at which an edge passes the columns between its ends, nearest to its start first. */
export type Waypoints = Float64Array;

export interface Grid {
  readonly rank: readonly number[];
  readonly columns: number;
  /** Middle of each box. */
  readonly y: readonly number[];
  /** Per edge; null where the level was too large to find any: such edges take a lane. */
  readonly ways: readonly (Waypoints | null)[];
  readonly leftWays: readonly (Waypoints | null)[];
  readonly rightWays: readonly (Waypoints | null)[];
  readonly leftY: number;
  readonly rightY: number;
}

/** Above this a level is drawn with lanes only: so many bends would take longer than anybody waits. */
const MOST_BENDS = 40_000;
const BEND_GAP = 9;

export function buildGrid(input: LevelInput): Grid {
  const boxes = input.widths.length;
  const inner = rankBoxes(boxes, input.edges);
  const columns = inner.reduce((most, r) => Math.max(most, r), 0) + 1;
  // The borders take part as two more vertices, in columns of their own at either end.
  const [left, right] = [boxes, boxes + 1];
  const rank = [...inner.map((r) => r + 1), 0, columns + 1];
  const all = [
    ...input.edges,
    ...input.left.map((box) => [left, box] as const),
    ...input.right.map((box) => [box, right] as const),
  ];
  const short = withinLimit(all, rank);
  const layers = buildLayers(rank, short.map((i) => all[i]));
  orderColumns(layers);
  const size = (vertex: number): number => (vertex < boxes ? input.heights[vertex] : 0);
  const gap = (vertex: number): number => (vertex < boxes ? ROW_GAP : BEND_GAP);
  const y = alignVertices(layers, (a, b) => (size(a) + size(b)) / 2 + Math.max(gap(a), gap(b)));

  const ways = all.map((): Waypoints | null => null);
  short.forEach((edge, i) => (ways[edge] = y.subarray(layers.bendStart[i], layers.bendStart[i + 1])));
  return {
    rank: inner,
    columns,
    y: [...y.subarray(0, boxes)],
    ways: ways.slice(0, input.edges.length),
    leftWays: ways.slice(input.edges.length, input.edges.length + input.left.length),
    rightWays: ways.slice(input.edges.length + input.left.length),
    leftY: y[left],
    rightY: y[right],
  };
}

/** Edges that get bends: all of them, or the shortest ones if all would be too many. */
function withinLimit(edges: readonly (readonly [number, number])[], rank: readonly number[]): number[] {
  const length = (i: number): number => rank[edges[i][1]] - rank[edges[i][0]] - 1;
  const all = edges.map((_, i) => i);
  if (all.reduce((sum, i) => sum + length(i), 0) <= MOST_BENDS) return all;
  let left = MOST_BENDS;
  return all.sort((a, b) => length(a) - length(b)).filter((i) => (left -= length(i)) >= 0);
}
