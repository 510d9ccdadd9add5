/** Boxes and the bends of long edges, column by column: what ordering and alignment work on. */

/** Vertices below `boxes` are boxes, the others are bends: places where a long edge passes a column. */
export interface Layers {
  readonly boxes: number;
  readonly count: number;
  /** Vertices of each column, top to bottom. Ordering rearranges these lists. */
  readonly columns: number[][];
  readonly columnOf: Int32Array;
  /** Neighbours one column to the left and to the right. */
  readonly before: readonly number[][];
  readonly after: readonly number[][];
  /** Bends of every edge, from its start to its end. */
  readonly bends: readonly number[][];
}

/** Edges must lead to a column further right. Vertices stand in the order of their numbers at first. */
export function buildLayers(rank: readonly number[], edges: readonly (readonly [number, number])[]): Layers {
  const boxes = rank.length;
  const columnOf = [...rank];
  const before: number[][] = rank.map(() => []);
  const after: number[][] = rank.map(() => []);
  const link = (a: number, b: number): void => {
    after[a].push(b);
    before[b].push(a);
  };
  const bends = edges.map(([from, to]) => {
    const passed: number[] = [];
    let last = from;
    for (let column = rank[from] + 1; column < rank[to]; column++) {
      const bend = columnOf.push(column) - 1;
      before.push([]);
      after.push([]);
      link(last, bend);
      passed.push(bend);
      last = bend;
    }
    link(last, to);
    return passed;
  });
  const columns: number[][] = [];
  columnOf.forEach((column, vertex) => (columns[column] ??= []).push(vertex));
  return { boxes, count: columnOf.length, columns, columnOf: Int32Array.from(columnOf), before, after, bends };
}

export function positionsIn(layers: Layers): Int32Array {
  const position = new Int32Array(layers.count);
  for (const column of layers.columns) column.forEach((vertex, i) => (position[vertex] = i));
  return position;
}
