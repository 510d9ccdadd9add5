/** A part of a slice as pixels. Pure, so that it can be tested without a canvas. */
import { shadeOf, VALUE, worstShade, type HeatScale } from "../model/heat";
import type { Slice } from "../model/slices";

/** What part of a slice is in view, in cells; may begin and end inside a cell. */
export interface CellWindow {
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

/**
 * One pixel per cell, or several cells per pixel where they would be smaller than that. Then the one that must not be
 * missed wins: a single NaN among a million numbers is on the screen. Returns whole cells, `width` × `height`.
 */
export function heatmapPixels(
  slice: Slice,
  scale: HeatScale,
  pixels: Uint32Array,
  window: CellWindow,
  most: { readonly width: number; readonly height: number },
) {
  const rowStart = Math.max(0, Math.floor(window.row));
  const rowEnd = Math.min(slice.rows, Math.ceil(window.row + window.rows));
  const columnStart = Math.max(0, Math.floor(window.column));
  const columnEnd = Math.min(slice.columns, Math.ceil(window.column + window.columns));
  const rows = Math.max(0, rowEnd - rowStart);
  const columns = Math.max(0, columnEnd - columnStart);
  const height = Math.max(1, Math.min(rows, most.height));
  const width = Math.max(1, Math.min(columns, most.width));
  const shades = new Uint16Array(width * height);
  const first = new Uint8Array(width * height).fill(1);
  for (let r = 0; r < rows; r++) {
    const line = Math.floor((r * height) / rows) * width;
    let at = slice.offset + (rowStart + r) * slice.rowStride + columnStart * slice.columnStride;
    for (let c = 0; c < columns; c++, at += slice.columnStride) {
      const shade = shadeOf(slice.data[at], VALUE, scale);
      const spot = line + (columns === width ? c : Math.floor((c * width) / columns));
      shades[spot] = first[spot] ? shade : farther(shades[spot], shade, scale);
      first[spot] = 0;
    }
  }
  const image = new Uint32Array(width * height);
  for (let i = 0; i < image.length; i++) image[i] = pixels[shades[i]];
  return { image, width, height, rowStart, rowEnd, columnStart, columnEnd };
}

/** On a scale around zero the value farther from zero wins, on others the larger one. */
function farther(a: number, b: number, scale: HeatScale): number {
  if (scale.kind !== "diverging" || a > 255 || b > 255) return worstShade(a, b);
  return Math.abs(a - 127.5) >= Math.abs(b - 127.5) ? a : b;
}
