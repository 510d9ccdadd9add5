/** Puts the vertices of every column in an order in which few edges cross. */
import { positionsIn, type Layers } from "./layers";

const PATIENCE = 3; // sweeps without improvement before giving up
const MOST_SWEEPS = 16;
const FEW = 400; // vertices: above that, swapping neighbours one by one takes too long

/**
 * Starts from the order of execution, and changes it only for fewer crossings: small changes of the network leave the
 * picture as it was. Each sweep goes through all columns, there or back, and sorts every one by the average position
 * of its neighbours in the column before.
 */
export function orderColumns(layers: Layers): void {
  const { columns, count } = layers;
  const work: Work = {
    layers, position: new Int32Array(count), wish: new Float64Array(count), sums: new Int32Array(longest(columns) + 2),
  };
  sweepOnce(work, true, layers.boxes); // bends begin beside the box that they come from, not below everything else
  let best = layers.order.slice();
  let fewest = crossingsIn(work);
  for (let sweep = 0, stale = 0; sweep < MOST_SWEEPS && stale < PATIENCE && fewest > 0; sweep++) {
    sweepOnce(work, sweep % 2 === 0, 0);
    if (count < FEW) exchangeNeighbours(work);
    const crossings = crossingsIn(work);
    if (crossings < fewest) {
      fewest = crossings;
      best = layers.order.slice();
      stale = 0;
    } else stale++;
  }
  layers.order.set(best);
}

/** Arrays that all sweeps share. */
interface Work {
  readonly layers: Layers;
  readonly position: Int32Array;
  readonly wish: Float64Array;
  readonly sums: Int32Array;
}

const longest = (columns: readonly Int32Array[]): number =>
  columns.reduce((most, column) => Math.max(most, column.length), 0);

/** Vertices below `firstMoving` stay where they are. */
function sweepOnce({ layers, position, wish }: Work, forward: boolean, firstMoving: number): void {
  const { start, list } = forward ? layers.before : layers.after;
  positionsIn(layers, layers.order, position);
  const last = layers.columns.length - 1;
  for (let k = 0; k <= last; k++) {
    const column = layers.columns[forward ? k : last - k];
    for (let i = 0; i < column.length; i++) {
      const vertex = column[i];
      const from = start[vertex];
      const to = start[vertex + 1];
      if (from === to || vertex < firstMoving) {
        wish[vertex] = i;
        continue;
      }
      let sum = 0;
      for (let n = from; n < to; n++) sum += position[list[n]];
      wish[vertex] = sum / (to - from);
    }
    sortByWish(column, wish);
    for (let i = 0; i < column.length; i++) position[column[i]] = i;
  }
}

const SHORT = 48; // most columns are; for these, and for nearly sorted ones, inserting beats the sort of the language

/** Stable: of two with the same wish, the upper one stays above. */
function sortByWish(column: Int32Array, wish: Float64Array): void {
  if (column.length > SHORT) {
    column.set(Array.from(column).sort((a, b) => wish[a] - wish[b]));
    return;
  }
  for (let i = 1; i < column.length; i++) {
    const vertex = column[i];
    const own = wish[vertex];
    let at = i;
    for (; at > 0 && wish[column[at - 1]] > own; at--) column[at] = column[at - 1];
    column[at] = vertex;
  }
}

/** Averages leave ties and traps; swapping two neighbours wherever that helps gets out of most of them. */
function exchangeNeighbours({ layers, position }: Work): void {
  positionsIn(layers, layers.order, position);
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
  for (const { start, list } of [layers.before, layers.after]) {
    for (let a = start[upper]; a < start[upper + 1]; a++) {
      for (let b = start[lower]; b < start[lower + 1]; b++) if (position[list[a]] > position[list[b]]) count++;
    }
  }
  return count;
}

export function countCrossings(layers: Layers): number {
  const sums = new Int32Array(longest(layers.columns) + 2);
  return crossingsIn({ layers, position: new Int32Array(layers.count), wish: new Float64Array(0), sums });
}

/** All crossings, by counting inversions with a tree of partial sums: fast also for thousands of edges. */
function crossingsIn({ layers, position, sums }: Work): number {
  const { start, list } = layers.after;
  positionsIn(layers, layers.order, position);
  let crossings = 0;
  for (let k = 0; k + 1 < layers.columns.length; k++) {
    const column = layers.columns[k];
    const size = layers.columns[k + 1].length;
    sums.fill(0, 0, size + 1);
    let seen = 0;
    for (let v = 0; v < column.length; v++) {
      const from = start[column[v]];
      const to = start[column[v] + 1];
      for (let n = from; n < to; n++) {
        crossings += seen;
        for (let i = position[list[n]] + 1; i > 0; i -= i & -i) crossings -= sums[i];
      }
      for (let n = from; n < to; n++) for (let i = position[list[n]] + 1; i <= size; i += i & -i) sums[i]++;
      seen += to - from;
    }
  }
  return crossings;
}
