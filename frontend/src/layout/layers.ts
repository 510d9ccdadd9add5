/**
 * Boxes and the bends of long edges, column by column: what ordering and alignment work on.
 *
 * All in flat arrays: a network without modules has thousands of columns and tens of thousands of bends, and lists of
 * lists would spend most of the time in making and collecting them.
 */

/** Neighbours of vertex v in one direction are list[start[v]] … list[start[v + 1] - 1]. */
export interface Neighbours {
  readonly start: Int32Array;
  readonly list: Int32Array;
  /** The segment that leads to each of them; both directions share the numbers. */
  readonly segment: Int32Array;
}

/** Vertices below `boxes` are boxes, the others are bends: places where a long edge passes a column. */
export interface Layers {
  readonly boxes: number;
  readonly count: number;
  /** Column after column, each from top to bottom; column k begins at columnStart[k]. Ordering rearranges it. */
  readonly order: Int32Array;
  readonly columnStart: Int32Array;
  /** The same, cut into columns. */
  readonly columns: readonly Int32Array[];
  /** Neighbours one column to the left and to the right. */
  readonly before: Neighbours;
  readonly after: Neighbours;
  readonly segments: number;
  /** Bends of edge i, from its start to its end, are bendStart[i] … bendStart[i + 1] - 1. */
  readonly bendStart: Int32Array;
}

type Edges = readonly (readonly [number, number])[];

/** Edges must lead to a column further right. Vertices stand in the order of their numbers at first. */
export function buildLayers(rank: readonly number[], edges: Edges): Layers {
  const boxes = rank.length;
  const bendStart = new Int32Array(edges.length + 1);
  bendStart[0] = boxes;
  edges.forEach(([from, to], i) => (bendStart[i + 1] = bendStart[i] + rank[to] - rank[from] - 1));
  const count = bendStart[edges.length];

  const columnOf = new Int32Array(count);
  columnOf.set(rank);
  const segments = count - boxes + edges.length;
  const tails = new Int32Array(segments);
  const heads = new Int32Array(segments);
  let segment = 0;
  edges.forEach(([from, to], i) => {
    let last = from;
    for (let bend = bendStart[i]; bend < bendStart[i + 1]; bend++) {
      columnOf[bend] = rank[from] + 1 + bend - bendStart[i];
      tails[segment] = last;
      heads[segment++] = last = bend;
    }
    tails[segment] = last;
    heads[segment++] = to;
  });
  const [before, after] = [gather(count, heads, tails), gather(count, tails, heads)];
  return { boxes, count, ...splitColumns(columnOf), before, after, segments, bendStart };
}

/** Where each value from 0 to count - 1 begins when a list is sorted by them. */
function startsOf(values: Int32Array, count: number): Int32Array {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < values.length; i++) start[values[i] + 1]++;
  for (let i = 0; i < count; i++) start[i + 1] += start[i];
  return start;
}

function splitColumns(columnOf: Int32Array) {
  const count = columnOf.reduce((most, column) => Math.max(most, column), -1) + 1;
  const columnStart = startsOf(columnOf, count);
  const next = columnStart.slice();
  const order = new Int32Array(columnOf.length);
  for (let vertex = 0; vertex < columnOf.length; vertex++) order[next[columnOf[vertex]]++] = vertex;
  const columns = Array.from({ length: count }, (_, k) => order.subarray(columnStart[k], columnStart[k + 1]));
  return { order, columnStart, columns };
}

function gather(count: number, by: Int32Array, other: Int32Array): Neighbours {
  const start = startsOf(by, count);
  const next = start.slice();
  const list = new Int32Array(by.length);
  const segment = new Int32Array(by.length);
  for (let i = 0; i < by.length; i++) {
    const at = next[by[i]]++;
    list[at] = other[i];
    segment[at] = i;
  }
  return { start, list, segment };
}

/** Place of every vertex in its column. */
export function positionsIn(
  { columnStart, count }: Layers,
  order: Int32Array,
  position: Int32Array = new Int32Array(count),
): Int32Array {
  for (let k = 0; k + 1 < columnStart.length; k++) {
    for (let i = columnStart[k]; i < columnStart[k + 1]; i++) position[order[i]] = i - columnStart[k];
  }
  return position;
}
