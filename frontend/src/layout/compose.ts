/**
 * The whole picture from its levels, innermost first.
 *
 *     edge a → b ─► climbs from a to the level that holds both ends ─► crosses it ─► descends to b
 *
 * Which side of a box an edge uses is known before anything is placed: with the flow it leaves to the right and enters
 * from the left, against the flow (a recurrence) the other way round. So each level can be laid out alone.
 */
import { copyPath, type Path } from "./curves";
import type { LevelInput } from "./grid";
import { LevelMemo, type LevelLayout } from "./level";
import { HEADER, PADDING, type LayoutRequest, type LayoutResult } from "./types";

/** What is known about one level before it is laid out. Level 0 is the top, level i + 1 the inside of box i. */
interface Level {
  readonly boxes: number[];
  readonly edges: [number, number][];
  readonly edgeAt: Map<number, number>;
  readonly left: Set<number>;
  readonly right: Set<number>;
}

/** The way of one edge: levels left behind, the level crossed, levels entered; boxes by their place in the level. */
interface Way {
  readonly climb: [level: number, box: number][];
  readonly level: number;
  readonly edge: number;
  readonly back: boolean;
  readonly descend: [level: number, box: number][];
}

export function composeLayout(request: LayoutRequest, memo: LevelMemo = new LevelMemo()): LayoutResult {
  const count = request.parent.length;
  const { levels, place } = collectLevels(request);
  const ways = findWays(request, levels, place);

  const width = Float32Array.from(request.width);
  const height = Float32Array.from(request.height);
  const layouts = new Array<LevelLayout | undefined>(count + 1);
  const settle = (level: number, leastWidth: number): LevelLayout => {
    const input = levelInput(levels[level] as Level, layouts, width, height, request.pins);
    return (layouts[level] = memo.layout({ ...input, leastWidth }));
  };
  for (let box = count - 1; box >= 0; box--) {
    if (!request.open[box]) continue;
    const inside = settle(box + 1, request.width[box] - 2 * PADDING);
    width[box] = inside.width + 2 * PADDING;
    height[box] = inside.height + HEADER + PADDING;
  }
  const top = settle(0, 0);

  const x = new Float32Array(count);
  const y = new Float32Array(count);
  const origin = (level: number): [number, number] =>
    level === 0 ? [0, 0] : [x[level - 1] + PADDING, y[level - 1] + HEADER];
  for (let box = 0; box < count; box++) {
    const level = request.parent[box] + 1;
    const [left, up] = origin(level);
    x[box] = left + (layouts[level] as LevelLayout).x[place[box]];
    y[box] = up + (layouts[level] as LevelLayout).y[place[box]];
  }
  const curves = drawWays(ways, layouts as LevelLayout[], origin);
  return { x, y, width, height, ...curves, totalWidth: top.width, totalHeight: top.height };
}

function collectLevels({ parent, open }: LayoutRequest) {
  const fresh = (): Level => ({ boxes: [], edges: [], edgeAt: new Map(), left: new Set(), right: new Set() });
  const levels: (Level | undefined)[] = [fresh()];
  const place = new Int32Array(parent.length);
  for (let box = 0; box < parent.length; box++) {
    if (open[box]) levels[box + 1] = fresh();
    place[box] = (levels[parent[box] + 1] as Level).boxes.push(box) - 1;
  }
  return { levels, place };
}

function findWays(request: LayoutRequest, levels: (Level | undefined)[], place: Int32Array): Way[] {
  const { parent, edges } = request;
  const depth = new Int32Array(parent.length);
  for (let box = 0; box < parent.length; box++) depth[box] = parent[box] < 0 ? 0 : depth[parent[box]] + 1;
  const ways: Way[] = [];
  for (let i = 0; i < edges.length; i += 2) {
    let [from, to] = [edges[i], edges[i + 1]];
    const climb: [number, number][] = [];
    const descend: [number, number][] = [];
    while (parent[from] !== parent[to]) {
      if (depth[from] >= depth[to]) {
        climb.push([parent[from] + 1, place[from]]);
        from = parent[from];
      } else {
        descend.unshift([parent[to] + 1, place[to]]);
        to = parent[to];
      }
    }
    const level = parent[from] + 1;
    const back = place[from] > place[to];
    for (const [inner, box] of climb) sideOf(levels[inner] as Level, back).add(box);
    for (const [inner, box] of descend) sideOf(levels[inner] as Level, !back).add(box);
    const edge = levelEdge(levels[level] as Level, place[from], place[to]);
    ways.push({ climb, level, edge, back, descend });
  }
  return ways;
}

const sideOf = (level: Level, leftSide: boolean): Set<number> => (leftSide ? level.left : level.right);

/** Both directions between two boxes share one track. */
function levelEdge(level: Level, from: number, to: number): number {
  const [a, b] = from < to ? [from, to] : [to, from];
  const key = a * level.boxes.length + b;
  let edge = level.edgeAt.get(key);
  if (edge === undefined) {
    edge = level.edges.push([a, b]) - 1;
    level.edgeAt.set(key, edge);
  }
  return edge;
}

function levelInput(
  level: Level,
  layouts: readonly (LevelLayout | undefined)[],
  width: Float32Array,
  height: Float32Array,
  pins: Float32Array | null,
): Omit<LevelInput, "leastWidth"> {
  const port = (box: number, side: "leftY" | "rightY"): number => {
    const inside = layouts[box + 1];
    return inside ? HEADER + inside[side] : height[box] / 2;
  };
  const ascending = (a: number, b: number): number => a - b;
  return {
    widths: level.boxes.map((box) => width[box]),
    heights: level.boxes.map((box) => height[box]),
    edges: level.edges,
    left: [...level.left].sort(ascending),
    right: [...level.right].sort(ascending),
    leftPort: level.boxes.map((box) => port(box, "leftY")),
    rightPort: level.boxes.map((box) => port(box, "rightY")),
    pins: level.boxes.map((box) =>
      pins && !Number.isNaN(pins[2 * box]) ? ([pins[2 * box], pins[2 * box + 1]] as const) : null,
    ),
  };
}

function drawWays(ways: readonly Way[], layouts: readonly LevelLayout[], origin: (level: number) => [number, number]) {
  const curveStart = new Int32Array(ways.length + 1);
  const back = new Uint8Array(ways.length);
  ways.forEach((way, i) => {
    let points = 2; // the start; every piece adds its own points but the first
    for (const piece of piecesOf(way, layouts)) points += piece.path.length - 2;
    curveStart[i + 1] = curveStart[i] + points;
    back[i] = way.back ? 1 : 0;
  });
  const curves = new Float32Array(curveStart[ways.length]);
  ways.forEach((way, i) => {
    let at = curveStart[i];
    for (const { level, path, reversed } of piecesOf(way, layouts)) {
      const [dx, dy] = origin(level);
      at = copyPath(curves, at, at === curveStart[i], path, reversed, dx, dy);
    }
  });
  return { curves, curveStart, back };
}

interface Piece {
  readonly level: number;
  readonly path: Path;
  readonly reversed: boolean;
}

function* piecesOf(way: Way, layouts: readonly LevelLayout[]): Generator<Piece> {
  const side = (level: number, box: number, left: boolean): Path =>
    (left ? layouts[level].left : layouts[level].right).get(box) as Path;
  // Paths on the left are kept from the border to the box, those on the right from the box to the border.
  for (const [level, box] of way.climb) yield { level, path: side(level, box, way.back), reversed: way.back };
  yield { level: way.level, path: layouts[way.level].edges[way.edge], reversed: way.back };
  for (const [level, box] of way.descend) yield { level, path: side(level, box, !way.back), reversed: way.back };
}
