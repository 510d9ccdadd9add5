/** Long chains are broken into rows, as text is: twelve blocks in a line would be too small to read. */
import type { Grid, LevelInput, Waypoints } from "./grid";
import { COLUMN_GAP } from "./types";

/** Where columns and rows stand. x of a column is its left edge; rows are stacked top to bottom. */
export interface Rows {
  readonly rowOf: readonly number[]; // per column
  readonly columnX: readonly number[];
  readonly columnWidth: readonly number[];
  /** Added to the heights of the grid. */
  readonly shift: readonly number[]; // per row
  readonly top: readonly number[];
  readonly bottom: readonly number[];
  readonly width: number;
  readonly height: number;
  /** Free room at the left and right for edges to other rows and to the borders. */
  readonly leftMargin: number;
  readonly rightMargin: number;
}

const WIDE_ENOUGH = 800; // below that a single row is readable on a laptop
const STAGE_ASPECT = 1.5; // width to height of what a picture is usually fitted into
const WORTH_A_ROW = 0.87; // a break costs a long edge, so it must make everything noticeably larger
const BETWEEN_ROWS = 42;
const MARGIN = 30;
const PORT_MARGIN = 16; // where edges fan out from the point at which they enter

export function breakIntoRows(input: LevelInput, grid: Grid): Rows {
  const columnWidth = new Array<number>(grid.columns).fill(0);
  grid.rank.forEach((column, box) => {
    columnWidth[column] = Math.max(columnWidth[column], input.widths[box]);
  });
  const whole = columnWidth.reduce((sum, width) => sum + width + COLUMN_GAP, -COLUMN_GAP);
  const reach = reachOf(input, grid);
  const one = place(input, grid, reach, columnWidth, columnWidth.map(() => 0));
  if (whole < WIDE_ENOUGH) return one;
  let best = one;
  for (const count of rowCounts(grid.columns)) {
    const rows = place(input, grid, reach, columnWidth, assignRows(columnWidth, count));
    if (extent(rows) < extent(best) * WORTH_A_ROW) best = rows;
    else if (rows.height * STAGE_ASPECT > rows.width) break; // more rows only make it taller
  }
  return best;
}

/** How large a stage the picture needs at full size: the larger, the smaller everything gets when it is fitted. */
const extent = (rows: Rows): number => Math.max(rows.width, rows.height * STAGE_ASPECT);

/** Numbers of rows to try: each at first, then in growing steps. */
function* rowCounts(columns: number): Generator<number> {
  for (let rows = 2; rows <= columns / 2; rows = Math.max(rows + 1, Math.floor(rows * 1.1))) yield rows;
}

function place(
  input: LevelInput,
  grid: Grid,
  reach: Reach,
  columnWidth: readonly number[],
  rowOf: readonly number[],
): Rows {
  const rows = rowOf[rowOf.length - 1] + 1;
  const leftMargin = rows > 1 ? MARGIN : input.left.length ? PORT_MARGIN : 0;
  const rightMargin = rows > 1 ? MARGIN : input.right.length ? PORT_MARGIN : 0;
  const columnX: number[] = [];
  let width = 0;
  for (let column = 0, x = leftMargin; column < grid.columns; column++) {
    if (column > 0 && rowOf[column] !== rowOf[column - 1]) x = leftMargin;
    columnX.push(x);
    width = Math.max(width, x + columnWidth[column] + rightMargin);
    x += columnWidth[column] + COLUMN_GAP;
  }
  const extents = extentOf(input, grid, reach, rowOf, rows);
  const [shift, top, bottom]: number[][] = [[], [], []];
  let y = 0;
  for (const { low, high } of extents) {
    shift.push(y - low);
    top.push(y);
    bottom.push(y + high - low);
    y += high - low + BETWEEN_ROWS;
  }
  const height = y - BETWEEN_ROWS;
  return { rowOf, columnX, columnWidth, shift, top, bottom, width, height, leftMargin, rightMargin };
}

/** The narrowest rows that hold all columns in their order: widened in small steps until they are few enough. */
function assignRows(columnWidth: readonly number[], count: number): number[] {
  const whole = columnWidth.reduce((sum, width) => sum + width + COLUMN_GAP, 0);
  for (let room = whole / count; ; room *= 1.02) {
    const rowOf = fillRows(columnWidth, room);
    if (rowOf[rowOf.length - 1] < count) return rowOf;
  }
}

function fillRows(columnWidth: readonly number[], room: number): number[] {
  let [used, row] = [0, 0];
  return columnWidth.map((width) => {
    if (used > 0 && used + width + COLUMN_GAP > room + 1e-6) [used, row] = [0, row + 1];
    used += width + COLUMN_GAP;
    return row;
  });
}

/** How far up and down each edge bends: found once, as many numbers of rows are tried. */
interface Reach {
  readonly edges: Float64Array; // low, high, low, high, …; low > high where there are no bends
  readonly left: Float64Array;
  readonly right: Float64Array;
}

const reachOf = (input: LevelInput, grid: Grid): Reach => ({
  edges: reachOfWays(input.edges.length, grid.ways),
  left: reachOfWays(input.left.length, grid.leftWays),
  right: reachOfWays(input.right.length, grid.rightWays),
});

function reachOfWays(count: number, ways: readonly (Waypoints | null)[]): Float64Array {
  const reach = new Float64Array(2 * count);
  for (let i = 0; i < count; i++) {
    let low = Infinity;
    let high = -Infinity;
    const way = ways[i];
    for (let k = 0; way && k < way.length; k++) {
      if (way[k] < low) low = way[k];
      if (way[k] > high) high = way[k];
    }
    reach[2 * i] = low - 4;
    reach[2 * i + 1] = high + 4;
  }
  return reach;
}

/** Upper and lower end of each row: boxes, and edges that pass the columns of their own row. */
function extentOf(input: LevelInput, grid: Grid, reach: Reach, rowOf: readonly number[], rows: number) {
  const low = new Float64Array(rows).fill(Infinity);
  const high = new Float64Array(rows).fill(-Infinity);
  const cover = (row: number, from: number, to: number): void => {
    if (from < low[row]) low[row] = from;
    if (to > high[row]) high[row] = to;
  };
  const rowOfBox = (box: number): number => rowOf[grid.rank[box]];
  for (let box = 0; box < grid.rank.length; box++) {
    const half = input.heights[box] / 2;
    cover(rowOfBox(box), grid.y[box] - half, grid.y[box] + half);
  }
  for (let i = 0; i < input.edges.length; i++) {
    const row = rowOfBox(input.edges[i][0]);
    if (row === rowOfBox(input.edges[i][1])) cover(row, reach.edges[2 * i], reach.edges[2 * i + 1]);
  }
  input.left.forEach((box, i) => {
    if (rowOfBox(box) === 0) cover(0, reach.left[2 * i], reach.left[2 * i + 1]);
  });
  input.right.forEach((box, i) => {
    if (rowOfBox(box) === rows - 1) cover(rows - 1, reach.right[2 * i], reach.right[2 * i + 1]);
  });
  return Array.from(low, (from, row) => (from <= high[row] ? { low: from, high: high[row] } : { low: 0, high: 0 }));
}
