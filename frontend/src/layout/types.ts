/** What goes to the layout worker and what comes back: flat arrays, which cross threads without being copied. */

export interface LayoutRequest {
  /** For every box the open box around it, -1 at the top. Boxes come after the box around them, in order of use. */
  readonly parent: Int32Array;
  readonly open: Uint8Array;
  /** Sizes of boxes; those of open boxes follow from what is inside, but are at least as wide as given here. */
  readonly width: Float32Array;
  readonly height: Float32Array;
  /** from, to, from, to, …: positions of boxes that are not open. */
  readonly edges: Int32Array;
  /** Where the user put a box, relative to the inside of the box around it: x, y per box, NaN if nowhere. */
  readonly pins: Float32Array | null;
}

export interface LayoutResult {
  /** Upper left corner and size of every box. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: Float32Array;
  readonly height: Float32Array;
  /** Per edge a start point and cubic curves (three points each); edge i is at curveStart[i] … curveStart[i + 1]. */
  readonly curves: Float32Array;
  readonly curveStart: Int32Array;
  /** Edges that run against the flow: a later pass that feeds an earlier box. */
  readonly back: Uint8Array;
  readonly totalWidth: number;
  readonly totalHeight: number;
}

/** Room around things, in units of the drawing (one unit is one pixel at zoom 1). */
export const HEADER = 26;
export const PADDING = 14;
export const COLUMN_GAP = 44;
export const ROW_GAP = 16;
