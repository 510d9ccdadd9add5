/** The inside of one open box: sizes of what it holds go in, positions and paths come out. Remembered by structure. */
import { flowPath, type Path } from "./curves";
import { buildGrid, type LevelInput } from "./grid";
import { applyPins } from "./pins";
import { boxLeft, boxTop, routeEdges } from "./routes";
import { breakIntoRows } from "./rows";
import { COLUMN_GAP, PADDING, ROW_GAP } from "./types";

export interface LevelLayout {
  readonly width: number;
  readonly height: number;
  /** Upper left corner of each box, relative to the inside of the level. */
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly edges: readonly Path[];
  /** Box -> path from the left border, and to the right border. */
  readonly left: ReadonlyMap<number, Path>;
  readonly right: ReadonlyMap<number, Path>;
  readonly leftY: number;
  readonly rightY: number;
}

/**
 * Forty-eight equal blocks are laid out once. The key holds everything that the result depends on, so a remembered
 * level is right by construction; names are not part of it.
 */
export class LevelMemo {
  private readonly known = new Map<string, LevelLayout>();
  hits = 0;
  misses = 0;

  constructor(private readonly most = 4000) {}

  layout(input: LevelInput): LevelLayout {
    const key = levelKey(input);
    const known = this.known.get(key);
    if (known) {
      this.hits++;
      return known;
    }
    this.misses++;
    if (this.known.size >= this.most) this.known.delete(this.known.keys().next().value as string);
    const found = layoutLevel(input);
    this.known.set(key, found);
    return found;
  }
}

export function levelKey(input: LevelInput): string {
  const { widths, heights, edges, left, right, leftPort, rightPort, pins, leastWidth } = input;
  let key = `${leastWidth}|${left.join()}|${right.join()}|`;
  for (let box = 0; box < widths.length; box++) {
    key += `${widths[box]},${heights[box]},${leftPort[box]},${rightPort[box]},${pins[box] ?? ""};`;
  }
  for (const [from, to] of edges) key += `${from}-${to} `;
  return key;
}

export function layoutLevel(input: LevelInput): LevelLayout {
  const linked = linkedBoxes(input);
  const main = layoutLinked(keepBoxes(input, linked));
  const x = new Array<number>(input.widths.length);
  const y = new Array<number>(input.widths.length);
  linked.forEach((box, i) => {
    x[box] = main.x[i];
    y[box] = main.y[i];
  });
  const size = placeLoose(input, new Set(linked), main, x, y);
  const width = Math.max(size.width, input.leastWidth);
  const border = (path: Path): Path => {
    const rest = flowPath([...path.slice(-2), width + PADDING, main.rightY]);
    return [...path, ...rest.slice(2)];
  };
  const whole = {
    width,
    height: size.height,
    x,
    y,
    edges: main.edges,
    left: rekey(main.left, linked),
    right: rekey(width > main.width ? mapValues(main.right, border) : main.right, linked),
    leftY: main.leftY,
    rightY: main.rightY,
  };
  return input.pins.some(Boolean) ? applyPins(input, whole) : whole;
}

const rekey = (paths: ReadonlyMap<number, Path>, boxes: readonly number[]): Map<number, Path> =>
  new Map([...paths].map(([box, path]) => [boxes[box], path]));

const mapValues = (paths: ReadonlyMap<number, Path>, change: (path: Path) => Path): Map<number, Path> =>
  new Map([...paths].map(([box, path]) => [box, change(path)]));

function linkedBoxes(input: LevelInput): number[] {
  const linked = new Set([...input.edges.flat(), ...input.left, ...input.right]);
  return input.widths.map((_, box) => box).filter((box) => linked.has(box));
}

function keepBoxes(input: LevelInput, boxes: readonly number[]): LevelInput {
  if (boxes.length === input.widths.length) return input;
  const place = new Map(boxes.map((box, i) => [box, i]));
  const at = (box: number): number => place.get(box) as number;
  const pick = <T>(all: readonly T[]): T[] => boxes.map((box) => all[box]);
  return {
    widths: pick(input.widths),
    heights: pick(input.heights),
    edges: input.edges.map(([a, b]) => [at(a), at(b)] as const),
    left: input.left.map(at),
    right: input.right.map(at),
    leftPort: pick(input.leftPort),
    rightPort: pick(input.rightPort),
    pins: pick(input.pins),
    leastWidth: input.leastWidth,
  };
}

function layoutLinked(input: LevelInput): LevelLayout {
  const nothing = { edges: [], left: new Map<number, Path>(), right: new Map<number, Path>(), leftY: 0, rightY: 0 };
  if (input.widths.length === 0) return { width: 0, height: 0, x: [], y: [], ...nothing };
  const grid = buildGrid(input);
  const rows = breakIntoRows(input, grid);
  const routes = routeEdges(input, grid, rows);
  return {
    width: rows.width,
    height: rows.height + routes.below,
    x: input.widths.map((_, box) => boxLeft(input, grid, rows, box)),
    y: input.widths.map((_, box) => boxTop(input, grid, rows, box)),
    edges: routes.edges,
    left: new Map(input.left.map((box, i) => [box, routes.left[i]])),
    right: new Map(input.right.map((box, i) => [box, routes.right[i]])),
    leftY: routes.leftY,
    rightY: routes.rightY,
  };
}

/** Boxes without any edge fill lines below the others, about as wide as these or as a good-looking block. */
function placeLoose(input: LevelInput, linked: ReadonlySet<number>, main: LevelLayout, x: number[], y: number[]) {
  const loose = input.widths.map((_, box) => box).filter((box) => !linked.has(box));
  if (loose.length === 0) return { width: main.width, height: main.height };
  const area = loose.reduce((sum, b) => sum + (input.widths[b] + ROW_GAP) * (input.heights[b] + ROW_GAP), 0);
  const limit = Math.max(main.width, Math.sqrt(area * 1.7), 240);
  let [left, top, line, width] = [0, main.height ? main.height + COLUMN_GAP / 2 : 0, 0, main.width];
  for (const box of loose) {
    if (left > 0 && left + input.widths[box] > limit) {
      top += line + ROW_GAP;
      [left, line] = [0, 0];
    }
    x[box] = left;
    y[box] = top;
    left += input.widths[box] + ROW_GAP;
    line = Math.max(line, input.heights[box]);
    width = Math.max(width, left - ROW_GAP);
  }
  return { width, height: top + line };
}
