/**
 * The way of every edge of one level: through the gaps that the ordering left for it, or along lanes between rows.
 *
 *     row 0   ▢ → ▢ → ▢ ┐            An edge inside a row passes the columns between at its waypoints.
 *          ┌────────────┘ lane        An edge to the next row goes down behind its box, along the lane, up to the
 *     row 1└→ ▢ → ▢                   next one; farther rows are reached through the left margin.
 */
import { flowPath, lanePath, type Path } from "./curves";
import type { Grid, LevelInput, Waypoints } from "./grid";
import type { Rows } from "./rows";
import { PADDING } from "./types";

export interface Routes {
  readonly edges: Path[];
  /** From the left border to a box, and from a box to the right border. */
  readonly left: Path[];
  readonly right: Path[];
  readonly leftY: number;
  readonly rightY: number;
  /** Room below the last row that lanes take. */
  readonly below: number;
}

/** Edges in one lane or gap are set apart a little; after a few they share their place. */
const LANES = 6;
const LANE_STEP = 5;
const NARROWER = 36; // than its column, on one side, before that matters

export function routeEdges(input: LevelInput, grid: Grid, rows: Rows): Routes {
  const router = new Router(input, grid, rows);
  const edges = input.edges.map(([from, to], i) => router.between(from, to, grid.ways[i]));
  const left = input.left.map((box, i) => router.fromLeft(box, grid.leftWays[i]));
  const right = input.right.map((box, i) => router.toRight(box, grid.rightWays[i]));
  return { edges, left, right, leftY: router.leftY, rightY: router.rightY, below: router.below };
}

class Router {
  readonly leftY: number;
  readonly rightY: number;
  below = 0;
  private readonly lastRow: number;
  private count = 0;

  constructor(
    private readonly input: LevelInput,
    private readonly grid: Grid,
    private readonly rows: Rows,
  ) {
    this.lastRow = rows.top.length - 1;
    const within = (y: number, row: number): number =>
      Math.min(Math.max(y + rows.shift[row], rows.top[row] + 4), Math.max(rows.top[row] + 4, rows.bottom[row] - 4));
    this.leftY = within(grid.leftY, 0);
    this.rightY = within(grid.rightY, this.lastRow);
  }

  between(from: number, to: number, ways: Waypoints | null): Path {
    const start = this.rightOf(from);
    if (ways && this.row(from) === this.row(to)) {
      return flowPath([...this.outOf(from), ...this.through(ways, this.grid.rank[from] + 1), ...this.into(to)]);
    }
    const [lane, step] = this.takeLane(this.row(from));
    const exit = this.behind(from, step);
    return lanePath([...start, exit, start[1], exit, lane, ...this.arrive(to, this.row(from), lane, step)]);
  }

  fromLeft(box: number, ways: Waypoints | null): Path {
    const start = [-PADDING, this.leftY];
    if (ways && this.row(box) === 0) return flowPath([...start, ...this.through(ways, 0), ...this.into(box)]);
    const row = Math.max(0, this.row(box) - 1);
    const [lane, step] = this.takeLane(row);
    const margin = this.marginX(step);
    return lanePath([...start, margin, this.leftY, margin, lane, ...this.arrive(box, row, lane, step)]);
  }

  toRight(box: number, ways: Waypoints | null): Path {
    const start = this.rightOf(box);
    const end = [this.rows.width + PADDING, this.rightY];
    if (ways && this.row(box) === this.lastRow) {
      return flowPath([...this.outOf(box), ...this.through(ways, this.grid.rank[box] + 1), ...end]);
    }
    const [lane, step] = this.takeLane(this.row(box));
    const exit = this.behind(box, step);
    const margin = this.rows.width - this.marginX(step);
    return lanePath([...start, exit, start[1], exit, lane, margin, lane, margin, this.rightY, ...end]);
  }

  /** From a lane below `row` to a box: at once if the box is in this row or the next, else down the left margin. */
  private arrive(box: number, row: number, lane: number, step: number): number[] {
    const target = this.row(box);
    const end = this.leftOf(box);
    const enter = this.rows.columnX[this.grid.rank[box]] - 9 - (step % 4) * LANE_STEP;
    if (target <= row + 1) return [enter, lane, enter, end[1], ...end];
    const margin = this.marginX(step);
    const [last] = this.takeLane(target - 1);
    return [margin, lane, margin, last, enter, last, enter, end[1], ...end];
  }

  private takeLane(row: number): [number, number] {
    const step = this.count++ % LANES;
    const offset = 9 + step * LANE_STEP;
    if (row === this.lastRow) this.below = 9 + LANES * LANE_STEP;
    return [this.rows.bottom[row] + offset, step];
  }

  private through(ways: Waypoints, firstColumn: number): number[] {
    const { columnX, columnWidth, shift, rowOf } = this.rows;
    const points: number[] = [];
    for (let k = 0; k < ways.length; k++) {
      const column = firstColumn + k;
      const y = ways[k] + shift[rowOf[column]];
      points.push(columnX[column], y, columnX[column] + columnWidth[column], y);
    }
    return points;
  }

  private marginX(step: number): number {
    return this.lastRow > 0 ? 3 + step * 4 : -10 + step;
  }

  private behind(box: number, step: number): number {
    const column = this.grid.rank[box];
    return this.rows.columnX[column] + this.rows.columnWidth[column] + 8 + (step % 4) * LANE_STEP;
  }

  private row(box: number): number {
    return this.rows.rowOf[this.grid.rank[box]];
  }

  /** Beside a box that is much wider, an edge bends only where the column of both has ended. */
  private outOf(box: number): number[] {
    const [x, y] = this.rightOf(box);
    const column = this.grid.rank[box];
    const end = this.rows.columnX[column] + this.rows.columnWidth[column];
    return end - x > NARROWER ? [x, y, end, y] : [x, y];
  }

  private into(box: number): number[] {
    const [x, y] = this.leftOf(box);
    const begin = this.rows.columnX[this.grid.rank[box]];
    return x - begin > NARROWER ? [begin, y, x, y] : [x, y];
  }

  private rightOf(box: number): [number, number] {
    const left = boxLeft(this.input, this.grid, this.rows, box);
    return [left + this.input.widths[box], this.portY(box, this.input.rightPort)];
  }

  private leftOf(box: number): [number, number] {
    return [boxLeft(this.input, this.grid, this.rows, box), this.portY(box, this.input.leftPort)];
  }

  private portY(box: number, port: readonly number[]): number {
    return boxTop(this.input, this.grid, this.rows, box) + port[box];
  }
}

/** Boxes stand in the middle of their column. */
export function boxLeft(input: LevelInput, grid: Grid, rows: Rows, box: number): number {
  const column = grid.rank[box];
  return rows.columnX[column] + (rows.columnWidth[column] - input.widths[box]) / 2;
}

export function boxTop(input: LevelInput, grid: Grid, rows: Rows, box: number): number {
  return grid.y[box] + rows.shift[rows.rowOf[grid.rank[box]]] - input.heights[box] / 2;
}
