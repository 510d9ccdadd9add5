/** Puts the vertices of every column in an order in which few edges cross. */
import { positionsIn, type Layers } from "./layers";

const PATIENCE = 3; // sweeps without improvement before giving up
const MOST_SWEEPS = 16;

/**
 * Starts from the order of execution, and changes it only for fewer crossings: small changes of the network leave the
 * picture as it was. Each sweep goes through all columns, there or back, and sorts every one by the average position
 * of its neighbours in the column before.
 */
export function orderColumns(layers: Layers): void {
  const { columns } = layers;
  spreadBends(layers);
  let best = columns.map((column) => [...column]);
  let fewest = countCrossings(layers);
  for (let sweep = 0, stale = 0; sweep < MOST_SWEEPS && stale < PATIENCE && fewest > 0; sweep++) {
    sweepOnce(layers, sweep % 2 === 0);
    if (layers.count < 400) exchangeNeighbours(layers);
    const crossings = countCrossings(layers);
    if (crossings < fewest) {
      fewest = crossings;
      best = columns.map((column) => [...column]);
      stale = 0;
    } else stale++;
  }
  best.forEach((order, i) => (columns[i] = order));
}

/** Bends begin beside the box that they come from, not below everything else. */
function spreadBends(layers: Layers): void {
  sweepOnce(layers, true, (vertex) => vertex >= layers.boxes);
}

function sweepOnce(layers: Layers, forward: boolean, moves: (vertex: number) => boolean = () => true): void {
  const position = positionsIn(layers);
  const wish = new Float64Array(layers.count);
  const last = layers.columns.length - 1;
  for (let k = 0; k <= last; k++) {
    const column = layers.columns[forward ? k : last - k];
    for (const vertex of column) {
      const neighbours = forward ? layers.before[vertex] : layers.after[vertex];
      wish[vertex] = neighbours.length && moves(vertex) ? mean(neighbours, position) : position[vertex];
    }
    column.sort((a, b) => wish[a] - wish[b] || position[a] - position[b]);
    column.forEach((vertex, i) => (position[vertex] = i));
  }
}

function mean(vertices: readonly number[], position: Int32Array): number {
  let sum = 0;
  for (const vertex of vertices) sum += position[vertex];
  return sum / vertices.length;
}

/** Averages leave ties and traps; swapping two neighbours wherever that helps gets out of most of them. */
function exchangeNeighbours(layers: Layers): void {
  const position = positionsIn(layers);
  for (let improved = true, rounds = 0; improved && rounds < 4; rounds++) {
    improved = false;
    for (const column of layers.columns) {
      for (let i = 0; i + 1 < column.length; i++) {
        const [a, b] = [column[i], column[i + 1]];
        const now = crossingsOf(layers, position, a, b);
        if (now === 0 || crossingsOf(layers, position, b, a) >= now) continue;
        [column[i], column[i + 1]] = [b, a];
        [position[a], position[b]] = [i + 1, i];
        improved = true;
      }
    }
  }
}

/** Crossings among the edges of two vertices if `upper` stands above `lower`. */
function crossingsOf(layers: Layers, position: Int32Array, upper: number, lower: number): number {
  let count = 0;
  for (const side of [layers.before, layers.after]) {
    for (const a of side[upper]) for (const b of side[lower]) if (position[a] > position[b]) count++;
  }
  return count;
}

/** All crossings, by counting inversions with a tree of partial sums: fast also for thousands of edges. */
export function countCrossings(layers: Layers): number {
  const position = positionsIn(layers);
  let crossings = 0;
  for (let k = 0; k + 1 < layers.columns.length; k++) {
    const size = layers.columns[k + 1].length;
    const sums = new Int32Array(size + 1);
    let seen = 0;
    for (const vertex of layers.columns[k]) {
      const ends = layers.after[vertex].map((to) => position[to]);
      for (const end of ends) {
        crossings += seen;
        for (let i = end + 1; i > 0; i -= i & -i) crossings -= sums[i];
      }
      for (const end of ends) for (let i = end + 1; i <= size; i += i & -i) sums[i]++;
      seen += ends.length;
    }
  }
  return crossings;
}
