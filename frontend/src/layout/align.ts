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

/** Per segment 1 where a long edge (between two bends) crosses it: the long one stays straight. */
function findConflicts(layers: Layers): Uint8Array {
  const conflicts = new Uint8Array(layers.segments);
  const position = positionsIn(layers, layers.order);
  const { start, list, segment } = layers.before;
  for (let k = 1; k < layers.columns.length; k++) {
    const column = layers.columns[k];
    let low = 0; // position of the last inner segment's start, and where scanning stopped
    let scanned = 0;
    for (let i = 0; i < column.length; i++) {
      const inner = innerStart(layers, column[i]);
      if (inner < 0 && i < column.length - 1) continue;
      const high = inner < 0 ? layers.columns[k - 1].length - 1 : position[inner];
      for (; scanned <= i; scanned++) {
        const current = column[scanned];
        for (let n = start[current]; n < start[current + 1]; n++) {
          const crosses = position[list[n]] < low || position[list[n]] > high;
          const isInner = list[n] >= layers.boxes && current >= layers.boxes;
          if (crosses && !isInner) conflicts[segment[n]] = 1;
        }
      }
      low = high;
    }
  }
  return conflicts;
}

/** The bend before a bend, or -1. */
function innerStart({ boxes, before }: Layers, vertex: number): number {
  if (vertex < boxes) return -1;
  const from = before.list[before.start[vertex]]; // a bend has exactly one vertex before it
  return from >= boxes ? from : -1;
}

function alignOnce(
  layers: Layers,
  separation: Separation,
  conflicts: Uint8Array,
  fromRight: boolean,
  upwards: boolean,
): Float64Array {
  const order = upwards ? upsideDown(layers) : layers.order;
  const position = positionsIn(layers, order);
  const root = chainVertices(layers, order, fromRight, position, conflicts);
  const sides: Separation = upwards ? (a, b) => separation(b, a) : separation;
  const y = packChains(layers, order, root, sides);
  if (upwards) for (let i = 0; i < y.length; i++) y[i] = -y[i];
  return y;
}

function upsideDown({ order, columnStart }: Layers): Int32Array {
  const turned = new Int32Array(order.length);
  for (let k = 0; k + 1 < columnStart.length; k++) {
    const both = columnStart[k] + columnStart[k + 1] - 1;
    for (let i = columnStart[k]; i < columnStart[k + 1]; i++) turned[i] = order[both - i];
  }
  return turned;
}

/** Links every vertex to a median neighbour unless that would cross a link made before; returns heads of chains. */
function chainVertices(
  { count, columnStart, before, after }: Layers,
  order: Int32Array,
  fromRight: boolean,
  position: Int32Array,
  conflicts: Uint8Array,
): Int32Array {
  const { start, list, segment } = fromRight ? after : before;
  const root = new Int32Array(count);
  for (let vertex = 0; vertex < count; vertex++) root[vertex] = vertex;
  const taken = new Uint8Array(count); // already continued by a vertex of the next column
  const sorted: number[] = []; // places in the list of neighbours, by position
  const link = (vertex: number, last: number): number => {
    const size = start[vertex + 1] - start[vertex];
    sorted.length = 0;
    for (let n = start[vertex]; n < start[vertex + 1]; n++) sorted.push(n);
    if (size > 1) sorted.sort((a, b) => position[list[a]] - position[list[b]]);
    const upper = Math.ceil((size - 1) / 2);
    for (let m = Math.floor((size - 1) / 2); m <= upper; m++) {
      const near = list[sorted[m]];
      if (taken[near] || position[near] <= last || conflicts[segment[sorted[m]]]) continue;
      taken[near] = 1;
      root[vertex] = root[near];
      return position[near];
    }
    return last;
  };
  const columns = columnStart.length - 1;
  for (let k = 0; k < columns; k++) {
    const column = fromRight ? columns - 1 - k : k;
    let last = -1;
    for (let i = columnStart[column]; i < columnStart[column + 1]; i++) {
      if (start[order[i]] < start[order[i] + 1]) last = link(order[i], last);
    }
  }
  return root;
}

/** Chains as high as possible, then each as low as the ones below it allow: that closes the gaps in between. */
function packChains(layers: Layers, columns: Int32Array, root: Int32Array, separation: Separation): Float64Array {
  const { count } = layers;
  const { start, lower, distance, waiting } = distances(layers, columns, root, separation);
  const y = new Float64Array(count);
  const order = new Int32Array(count);
  let known = 0;
  for (let vertex = 0; vertex < count; vertex++) {
    if (root[vertex] === vertex && !waiting[vertex]) order[known++] = vertex;
  }
  for (let k = 0; k < known; k++) {
    const chain = order[k];
    for (let i = start[chain]; i < start[chain + 1]; i++) {
      const least = y[chain] + distance[i];
      if (y[lower[i]] < least) y[lower[i]] = least;
      if (--waiting[lower[i]] === 0) order[known++] = lower[i];
    }
  }
  for (let k = known - 1; k >= 0; k--) {
    const chain = order[k];
    let room = Infinity;
    for (let i = start[chain]; i < start[chain + 1]; i++) room = Math.min(room, y[lower[i]] - distance[i]);
    if (room < Infinity && room > y[chain]) y[chain] = room;
  }
  for (let vertex = 0; vertex < count; vertex++) if (root[vertex] !== vertex) y[vertex] = y[root[vertex]];
  return y;
}

/** For every chain, the chains right below it anywhere, and how far they have to stay away. */
function distances({ count, columnStart }: Layers, order: Int32Array, root: Int32Array, separation: Separation) {
  const start = new Int32Array(count + 1);
  const waiting = new Int32Array(count);
  const columns = columnStart.length - 1;
  for (let k = 0; k < columns; k++) {
    for (let i = columnStart[k] + 1; i < columnStart[k + 1]; i++) {
      start[root[order[i - 1]] + 1]++;
      waiting[root[order[i]]]++;
    }
  }
  for (let i = 0; i < count; i++) start[i + 1] += start[i];
  const next = start.slice();
  const lower = new Int32Array(start[count]);
  const distance = new Float64Array(start[count]);
  for (let k = 0; k < columns; k++) {
    for (let i = columnStart[k] + 1; i < columnStart[k + 1]; i++) {
      const at = next[root[order[i - 1]]]++;
      lower[at] = root[order[i]];
      distance[at] = separation(order[i - 1], order[i]);
    }
  }
  return { start, lower, distance, waiting };
}

/** All four shifted onto the narrowest, then the average of the middle two. */
function combine(results: readonly Float64Array[]): Float64Array {
  const ends = results.map((y) => [
    y.reduce((a, b) => Math.min(a, b), Infinity),
    y.reduce((a, b) => Math.max(a, b), -Infinity),
  ]);
  const narrowest = ends.reduce((best, end) => (end[1] - end[0] < best[1] - best[0] ? end : best));
  const shifts = ends.map((end, i) => (i % 2 === 0 ? narrowest[0] - end[0] : narrowest[1] - end[1]));
  const [a, b, c, d] = results;
  const y = new Float64Array(a.length);
  for (let i = 0; i < y.length; i++) {
    const p = a[i] + shifts[0];
    const q = b[i] + shifts[1];
    const r = c[i] + shifts[2];
    const s = d[i] + shifts[3];
    const lowerMiddle = Math.max(Math.min(p, q), Math.min(r, s));
    const upperMiddle = Math.min(Math.max(p, q), Math.max(r, s));
    y[i] = (lowerMiddle + upperMiddle) / 2;
  }
  return y;
}
