/**
 * Paths as lists of numbers: a start point, then cubic Bézier curves of three points each.
 * They are made once per layout, so that drawing a frame is nothing but replaying numbers.
 */

export type Path = number[];

/** Through points from left to right, leaving and reaching each one horizontally. */
export function flowPath(points: readonly number[]): Path {
  const path: Path = [points[0], points[1]];
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = [points[i - 2], points[i - 1], points[i], points[i + 1]];
    // Where the target is not to the right (a box that was moved by hand), a bulge keeps the arrow readable.
    const reach = x1 > x0 ? (x1 - x0) / 2 : Math.max(24, Math.abs(y1 - y0) / 4);
    if (y0 === y1 && x1 > x0) path.push(x0, y0, x1, y1, x1, y1);
    else path.push(x0 + reach, y0, x1 - reach, y1, x1, y1);
  }
  return path;
}

/** Straight pieces with rounded corners. */
export function lanePath(points: readonly number[], radius = 8): Path {
  const corners = withoutRepeats(points);
  const path: Path = [corners[0], corners[1]];
  const line = (x: number, y: number): void => {
    path.push(path[path.length - 2], path[path.length - 1], x, y, x, y);
  };
  for (let i = 2; i < corners.length - 2; i += 2) {
    const [x0, y0, x1, y1, x2, y2] = corners.slice(i - 2, i + 4);
    const before = Math.hypot(x1 - x0, y1 - y0);
    const after = Math.hypot(x2 - x1, y2 - y1);
    const r = Math.min(radius, before / 2, after / 2);
    const enter = [x1 + ((x0 - x1) * r) / before, y1 + ((y0 - y1) * r) / before];
    const leave = [x1 + ((x2 - x1) * r) / after, y1 + ((y2 - y1) * r) / after];
    line(enter[0], enter[1]);
    path.push((enter[0] + 2 * x1) / 3, (enter[1] + 2 * y1) / 3);
    path.push((leave[0] + 2 * x1) / 3, (leave[1] + 2 * y1) / 3, leave[0], leave[1]);
  }
  line(corners[corners.length - 2], corners[corners.length - 1]);
  return path;
}

function withoutRepeats(points: readonly number[]): number[] {
  const kept = [points[0], points[1]];
  for (let i = 2; i < points.length; i += 2) {
    const [dx, dy] = [points[i] - kept[kept.length - 2], points[i + 1] - kept[kept.length - 1]];
    if (Math.hypot(dx, dy) > 0.01) kept.push(points[i], points[i + 1]);
  }
  return kept.length > 2 ? kept : [...kept, ...kept];
}

export const movedPath = (path: Path, dx: number, dy: number): Path =>
  dx === 0 && dy === 0 ? path : path.map((value, i) => value + (i % 2 === 0 ? dx : dy));

/**
 * Copies a path, moved by (dx, dy) and perhaps walked the other way, to `at`; returns where the next one goes.
 * All but the first piece of an edge begin where the one before ended, so their start is left out.
 */
export function copyPath(
  to: Float32Array,
  at: number,
  isFirst: boolean,
  path: Path,
  reversed: boolean,
  dx: number,
  dy: number,
): number {
  const points = path.length / 2;
  for (let k = isFirst ? 0 : 1; k < points; k++) {
    const from = 2 * (reversed ? points - 1 - k : k);
    to[at++] = path[from] + dx;
    to[at++] = path[from + 1] + dy;
  }
  return at;
}

/** A point on the path; `t` runs from 0 to the number of curves. For hit tests and for arrows in the middle. */
export function pointOn(curves: ArrayLike<number>, start: number, t: number): [number, number] {
  const piece = Math.floor(t);
  const u = t - piece;
  const v = 1 - u;
  const at = start + piece * 6;
  const point = (axis: number): number =>
    v * v * v * curves[at + axis] +
    3 * v * v * u * curves[at + 2 + axis] +
    3 * v * u * u * curves[at + 4 + axis] +
    u * u * u * curves[at + 6 + axis];
  return [point(0), point(1)];
}
