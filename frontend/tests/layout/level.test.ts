import { expect, test } from "vitest";
import { generator } from "../../gallery/networks";
import { alignVertices } from "../../src/layout/align";
import { pointOn } from "../../src/layout/curves";
import type { LevelInput } from "../../src/layout/grid";
import { buildLayers, type Layers } from "../../src/layout/layers";
import { layoutLevel, levelKey, LevelMemo } from "../../src/layout/level";
import { countCrossings, orderColumns } from "../../src/layout/order";
import { rankBoxes } from "../../src/layout/ranks";

type Pair = readonly [number, number];

export function level(count: number, edges: readonly Pair[], more: Partial<LevelInput> = {}): LevelInput {
  const all = <T>(value: T): T[] => new Array<T>(count).fill(value);
  return {
    widths: all(120), heights: all(40), edges, left: [], right: [], leftPort: all(20), rightPort: all(20),
    pins: all(null), leastWidth: 0, ...more,
  };
}

function randomEdges(count: number, seed: number): Pair[] {
  const random = generator(seed);
  const pairs = new Map<string, Pair>();
  for (let to = 1; to < count; to++) {
    for (let k = 0; k < 2; k++) {
      const from = Math.floor(random() * to);
      pairs.set(`${from}-${to}`, [from, to]);
    }
  }
  return [...pairs.values()];
}

test("columns: every edge leads to the right, sources stand beside their readers", () => {
  const edges = randomEdges(40, 3);
  const rank = rankBoxes(40, edges);
  for (const [from, to] of edges) expect(rank[from]).toBeLessThan(rank[to]);
  expect(rankBoxes(4, [[0, 2], [2, 3], [1, 3]])).toEqual([0, 1, 1, 2]);
});

/** The slow twin: every pair of edges between neighbouring columns. */
function crossingsByHand({ columns, after }: Layers): number {
  let count = 0;
  const readers = (v: number): number[] => [...after.list.slice(after.start[v], after.start[v + 1])];
  for (let k = 0; k + 1 < columns.length; k++) {
    const ends = [...columns[k]].flatMap((v, i) => readers(v).map((to) => [i, columns[k + 1].indexOf(to)]));
    for (const [a, x] of ends) for (const [b, y] of ends) if (a < b && x > y) count++;
  }
  return count;
}

test.each([1, 2, 3, 4])("ordering never adds crossings, and they are counted right (%d)", (seed) => {
  const edges = randomEdges(30, seed);
  const layers = buildLayers(rankBoxes(30, edges), edges);
  expect(countCrossings(layers)).toBe(crossingsByHand(layers));
  const before = countCrossings(layers);
  orderColumns(layers);
  expect(countCrossings(layers)).toBe(crossingsByHand(layers));
  expect(countCrossings(layers)).toBeLessThanOrEqual(before);
});

test("a crossing that can be undone is", () => {
  const edges: Pair[] = [[0, 3], [1, 2]];
  const layers = buildLayers([0, 0, 1, 1], edges);
  expect(countCrossings(layers)).toBe(1);
  orderColumns(layers);
  expect(countCrossings(layers)).toBe(0);
});

test("without crossings the order of execution stays", () => {
  const layers = buildLayers([0, 1, 1, 1, 2], [[0, 1], [0, 2], [0, 3], [1, 4], [2, 4], [3, 4]]);
  orderColumns(layers);
  expect([...layers.columns[1]]).toEqual([1, 2, 3]);
});

test.each([1, 2, 3, 4, 5])("alignment keeps the order and the distances (%d)", (seed) => {
  const edges = randomEdges(40, seed);
  const layers = buildLayers(rankBoxes(40, edges), edges);
  orderColumns(layers);
  const size = (v: number): number => (v < layers.boxes ? 40 : 0);
  const distance = (a: number, b: number): number => (size(a) + size(b)) / 2 + 10;
  const y = alignVertices(layers, distance);
  for (const column of layers.columns) {
    for (let i = 1; i < column.length; i++) {
      expect(y[column[i]] - y[column[i - 1]]).toBeGreaterThanOrEqual(distance(column[i - 1], column[i]) - 1e-6);
    }
  }
});

test("a long edge past one box runs straight", () => {
  const layers = buildLayers([0, 1, 2, 3, 4], [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]]);
  orderColumns(layers);
  const y = alignVertices(layers, (a, b) => (a < 5 && b < 5 ? 60 : 30));
  const bends = y.slice(layers.bendStart[4], layers.bendStart[5]);
  expect(bends).toHaveLength(3);
  expect(new Set(bends).size).toBe(1);
});

const overlaps = (x: readonly number[], y: readonly number[], input: LevelInput): [number, number][] => {
  const found: [number, number][] = [];
  x.forEach((_, a) => {
    for (let b = a + 1; b < x.length; b++) {
      const apart =
        x[a] + input.widths[a] <= x[b] || x[b] + input.widths[b] <= x[a] ||
        y[a] + input.heights[a] <= y[b] || y[b] + input.heights[b] <= y[a];
      if (!apart) found.push([a, b]);
    }
  });
  return found;
};

test.each([5, 17, 60])("%d boxes of different sizes never overlap", (count) => {
  const random = generator(count);
  const widths = Array.from({ length: count }, () => 80 + 300 * random());
  const heights = Array.from({ length: count }, () => 30 + 200 * random());
  const input = level(count, randomEdges(count, count), {
    widths, heights, leftPort: heights.map((h) => h / 2), rightPort: heights.map((h) => h / 2),
    left: [0, 3], right: [count - 1],
  });
  const found = layoutLevel(input);
  expect(overlaps(found.x, found.y, input)).toEqual([]);
  found.x.forEach((x, i) => expect(x + widths[i]).toBeLessThanOrEqual(found.width + 1e-6));
  found.y.forEach((y, i) => expect(y + heights[i]).toBeLessThanOrEqual(found.height + 1e-6));
});

test("a long chain is broken into rows", () => {
  const chain = Array.from({ length: 23 }, (_, i): Pair => [i, i + 1]);
  const { width, height } = layoutLevel(level(24, chain));
  expect(width / height).toBeLessThan(4);
  expect(layoutLevel(level(4, chain.slice(0, 3))).height).toBe(40);
});

test("boxes without edges fill lines", () => {
  const input = level(20, []);
  const found = layoutLevel(input);
  expect(overlaps(found.x, found.y, input)).toEqual([]);
  expect(found.width / found.height).toBeLessThan(5);
  expect(found.width / found.height).toBeGreaterThan(0.5);
});

test("an edge of a narrow box does not cross the wide box below it", () => {
  // 1 and 2 share a column; both are read by 3.
  const input = level(4, [[0, 1], [0, 2], [1, 3], [2, 3]], { widths: [100, 100, 600, 100], heights: [40, 40, 300, 40] });
  const { x, y, edges } = layoutLevel(input);
  const points = (edge: number): [number, number][] =>
    Array.from({ length: 101 }, (_, i) => pointOn(edges[edge], 0, (i / 100) * ((edges[edge].length - 2) / 6 - 1e-9)));
  const inside = ([px, py]: [number, number], box: number): boolean =>
    px > x[box] + 1 && px < x[box] + input.widths[box] - 1 && py > y[box] + 1 && py < y[box] + input.heights[box] - 1;
  for (const edge of [0, 2]) expect(points(edge).filter((point) => inside(point, 2))).toEqual([]);
});

test("a pinned box is where it was put, and its edges lead there", () => {
  const input = level(3, [[0, 1], [1, 2]], { pins: [null, [400, 300], null] });
  const found = layoutLevel(input);
  expect([found.x[1], found.y[1]]).toEqual([400, 300]);
  expect(found.edges[0].slice(-2)).toEqual([400, 320]);
  expect(found.height).toBe(340);
});

test("equal structures are laid out once; anything that matters makes another key", () => {
  const memo = new LevelMemo();
  const one = memo.layout(level(3, [[0, 1]]));
  expect(memo.layout(level(3, [[0, 1]]))).toBe(one);
  expect([memo.hits, memo.misses]).toEqual([1, 1]);
  const variants: Partial<LevelInput>[] = [
    {}, { edges: [[0, 2]] }, { left: [0] }, { right: [0] }, { widths: [1, 2, 3] }, { heights: [1, 2, 3] },
    { leftPort: [1, 1, 1] }, { rightPort: [1, 1, 1] }, { pins: [[0, 0], null, null] }, { leastWidth: 9 },
  ];
  expect(new Set(variants.map((v) => levelKey(level(3, [[0, 1]], v)))).size).toBe(variants.length);
});

test("the memory is bounded", () => {
  const memo = new LevelMemo(2);
  for (const count of [2, 3, 4, 2]) memo.layout(level(count, [[0, 1]]));
  expect(memo.misses).toBe(4);
});
