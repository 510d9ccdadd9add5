/**
 * Heights of all vertices, so that long edges run straight and boxes face their neighbours.
 *
 * After Brandes and Köpf, "Fast and simple horizontal coordinate assignment" (2002), turned by a quarter: vertices are
 * chained to the median of their neighbours, chains are packed as tight as the order allows, once for each of the four
 * ways to break ties (from either side, towards either end), and every vertex takes the average of its middle two.
 */
import { positionsIn, type Layers } from "./layers";

/** Distance that two neighbours in a column keep between their middles. */
export type Separation = (upper: number, lower: number) => number;

export function alignVertices(layers: Layers, separation: Separation): Float64Array {
  const conflicts = findConflicts(layers);
  const results: Float64Array[] = [];
  for (const fromRight of [false, true]) {
    for (const upwards of [false, true]) {
      results.push(alignOnce(layers, separation, conflicts, fromRight, upwards));
    }
  }
  return combine(results);
}

const segment = (layers: Layers, a: number, b: number): number =>
  a < b ? a * layers.count + b : b * layers.count + a;

/** Where a long edge (between two bends) is crossed by another segment, the long one stays straight. */
function findConflicts(layers: Layers): Set<number> {
  const conflicts = new Set<number>();
  const position = positionsIn(layers);
  const isBend = (vertex: number): boolean => vertex >= layers.boxes;
  for (let k = 1; k < layers.columns.length; k++) {
    const column = layers.columns[k];
    let low = 0; // position of the last inner segment's start, and where scanning stopped
    let scanned = 0;
    column.forEach((vertex, i) => {
      const inner = isBend(vertex) ? layers.before[vertex].find(isBend) : undefined;
      if (inner === undefined && i < column.length - 1) return;
      const high = inner === undefined ? layers.columns[k - 1].length - 1 : position[inner];
      for (; scanned <= i; scanned++) {
        const current = column[scanned];
        for (const from of layers.before[current]) {
          const crosses = position[from] < low || position[from] > high;
          if (crosses && !(isBend(from) && isBend(current))) conflicts.add(segment(layers, from, current));
        }
      }
      low = high;
    });
  }
  return conflicts;
}

function alignOnce(
  layers: Layers,
  separation: Separation,
  conflicts: ReadonlySet<number>,
  fromRight: boolean,
  upwards: boolean,
): Float64Array {
  let columns = layers.columns as readonly (readonly number[])[];
  if (fromRight) columns = columns.toReversed();
  if (upwards) columns = columns.map((column) => column.toReversed());
  const position = new Int32Array(layers.count);
  for (const column of columns) column.forEach((vertex, i) => (position[vertex] = i));
  const neighbours = fromRight ? layers.after : layers.before;
  const root = chainVertices(layers, columns, neighbours, position, conflicts);
  const sides: Separation = upwards ? (a, b) => separation(b, a) : separation;
  const y = packChains(layers.count, columns, root, sides);
  return upwards ? y.map((value) => -value) : y;
}

/** Links every vertex to a median neighbour unless that would cross a link made before; returns heads of chains. */
function chainVertices(
  layers: Layers,
  columns: readonly (readonly number[])[],
  neighbours: readonly (readonly number[])[],
  position: Int32Array,
  conflicts: ReadonlySet<number>,
): Int32Array {
  const root = Int32Array.from({ length: layers.count }, (_, vertex) => vertex);
  const taken = new Uint8Array(layers.count); // already continued by a vertex of the next column
  for (const column of columns) {
    let last = -1;
    for (const vertex of column) {
      const sorted = [...neighbours[vertex]].sort((a, b) => position[a] - position[b]);
      const middle = (sorted.length - 1) / 2;
      for (const m of middle % 1 ? [Math.floor(middle), Math.ceil(middle)] : [middle]) {
        const near = sorted[m];
        if (near === undefined || taken[near] || position[near] <= last) continue;
        if (conflicts.has(segment(layers, near, vertex))) continue;
        taken[near] = 1;
        root[vertex] = root[near];
        last = position[near];
        break;
      }
    }
  }
  return root;
}

/** Chains as high as possible, then each as low as the ones below it allow: that closes the gaps in between. */
function packChains(
  count: number,
  columns: readonly (readonly number[])[],
  root: Int32Array,
  separation: Separation,
): Float64Array {
  const below: [number, number][][] = Array.from({ length: count }, () => []);
  const waiting = new Int32Array(count);
  for (const column of columns) {
    for (let i = 1; i < column.length; i++) {
      below[root[column[i - 1]]].push([root[column[i]], separation(column[i - 1], column[i])]);
      waiting[root[column[i]]]++;
    }
  }
  const y = new Float64Array(count);
  const order: number[] = [];
  for (let vertex = 0; vertex < count; vertex++) if (root[vertex] === vertex && !waiting[vertex]) order.push(vertex);
  for (let k = 0; k < order.length; k++) {
    for (const [lower, distance] of below[order[k]]) {
      y[lower] = Math.max(y[lower], y[order[k]] + distance);
      if (--waiting[lower] === 0) order.push(lower);
    }
  }
  for (const chain of order.toReversed()) {
    let room = Infinity;
    for (const [lower, distance] of below[chain]) room = Math.min(room, y[lower] - distance);
    if (room < Infinity) y[chain] = Math.max(y[chain], room);
  }
  return y.map((_, vertex) => y[root[vertex]]);
}

/** All four shifted onto the narrowest, then the average of the middle two. */
function combine(results: readonly Float64Array[]): Float64Array {
  const ends = results.map((y) => [
    y.reduce((a, b) => Math.min(a, b), Infinity),
    y.reduce((a, b) => Math.max(a, b), -Infinity),
  ]);
  const narrowest = ends.reduce((best, end) => (end[1] - end[0] < best[1] - best[0] ? end : best));
  const shifts = ends.map((end, i) => (i % 2 === 0 ? narrowest[0] - end[0] : narrowest[1] - end[1]));
  return results[0].map((_, vertex) => {
    const four = results.map((y, i) => y[vertex] + shifts[i]).sort((a, b) => a - b);
    return (four[1] + four[2]) / 2;
  });
}
