/** The arithmetic behind heat maps, histograms and number grids. */
import { expect, test } from "vitest";
import { roundTicks, withoutCrowding } from "../../src/draw/axis";
import {
  blockOf, cellAtPoint, cellsInView, copyText, HEAD_HEIGHT, HEAD_WIDTH, moveCell,
} from "../../src/draw/grid_cells";
import { heatmapPixels } from "../../src/draw/heatmap_image";
import { columnEdges } from "../../src/draw/histogram_time";
import { shadeTable } from "../../src/draw/shades";
import { divergingScale, linearScale, SHADE_NAN } from "../../src/model/heat";
import { defaultChoice, sliceOf } from "../../src/model/slices";

const table = shadeTable("linear", "light", [255, 255, 255]);
const slice = (rows: number, columns: number, value: (i: number) => number) => {
  const data = Float32Array.from({ length: rows * columns }, (_, i) => value(i));
  return sliceOf(data, [rows, columns], defaultChoice([rows, columns]));
};
const everything = (rows: number, columns: number) => ({ row: 0, column: 0, rows, columns });

test("one pixel per cell while there is room", () => {
  const most = { width: 90, height: 90 };
  const part = heatmapPixels(slice(2, 3, (i) => i), linearScale(0, 5), table.pixels, everything(2, 3), most);
  expect([part.width, part.height]).toEqual([3, 2]);
  expect([...part.image]).toEqual([0, 51, 102, 153, 204, 255].map((shade) => table.pixels[shade]));
});

test("a single NaN among a million numbers is on the screen", () => {
  const big = slice(1000, 1000, (i) => (i === 777_123 ? NaN : 0.5));
  const part = heatmapPixels(big, linearScale(0, 1), table.pixels, everything(1000, 1000), { width: 100, height: 80 });
  expect([part.width, part.height]).toEqual([100, 80]);
  const found = [...part.image].flatMap((pixel, i) => (pixel === table.pixels[SHADE_NAN] ? [i] : []));
  expect(found).toEqual([Math.floor((777 * 80) / 1000) * 100 + 12]);
});

test("where cells share a pixel, the largest wins; around zero the one farthest from it", () => {
  const pair = slice(1, 2, (i) => [-0.9, 0.3][i]);
  const only = (scale: ReturnType<typeof linearScale>): number =>
    heatmapPixels(pair, scale, table.pixels, everything(1, 2), { width: 1, height: 1 }).image[0];
  expect(only(linearScale(-1, 1))).toBe(table.pixels[Math.round(0.65 * 255)]);
  expect(only(divergingScale(1))).toBe(table.pixels[Math.round(divergingScale(1).place(-0.9) * 255)]);
});

test("a window into a slice", () => {
  const window = { row: 2.5, column: 7, rows: 2, columns: 9 };
  const most = { width: 50, height: 50 };
  const part = heatmapPixels(slice(10, 10, (i) => i), linearScale(0, 99), table.pixels, window, most);
  expect(part).toMatchObject({ rowStart: 2, rowEnd: 5, columnStart: 7, columnEnd: 10, width: 3, height: 3 });
  expect(part.image[0]).toBe(table.pixels[Math.round((27 / 99) * 255)]);
});

test("ticks are round and inside", () => {
  expect(roundTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(roundTicks(-0.0469, 0.0469, 4)).toEqual([-0.04, -0.02, 0, 0.02, 0.04]);
  expect(roundTicks(3, 3, 4)).toEqual([3]);
  expect(withoutCrowding([0, 10, 30, 45, 70], (x) => x, 25)).toEqual([0, 30, 70]);
});

test("every recorded step is as wide as the time it stands for", () => {
  expect(columnEdges([0, 2, 10])).toEqual([-1, 1, 6, 14]);
  expect(columnEdges([7])).toEqual([6.5, 7.5]);
});

const grid = slice(500, 200, (i) => i / 7);

test("of a large grid only what is in view is drawn", () => {
  const view = cellsInView(grid, 740, 2100, 430, 210);
  expect(view).toMatchObject({ top: 100, left: 10 });
  expect((view.bottom - view.top) * (view.right - view.left)).toBeLessThan(80);
  expect(cellsInView(grid, 1e9, 1e9, 430, 210)).toMatchObject({ bottom: 500, right: 200 });
});

test("the cell below the pointer", () => {
  expect(cellAtPoint(grid, 740, 2100, HEAD_WIDTH + 1, HEAD_HEIGHT + 1)).toEqual({ row: 100, column: 10 });
  expect(cellAtPoint(grid, 0, 0, 5, 50)).toBeNull();
  expect(cellAtPoint(grid, 0, 0, 5000_000, 50)).toBeNull();
});

test("what is copied is exact and has tabs and lines", () => {
  const odd = slice(2, 3, (i) => [0.1, NaN, -Infinity, 1 / 3, -0, 2][i]);
  const range = { from: { row: 1, column: 2 }, to: { row: 0, column: 0 } };
  expect(copyText(odd, range)).toBe("0.1\tnan\t-inf\n0.33333334\t-0\t2");
  expect(blockOf(range)).toEqual({ top: 0, left: 0, bottom: 2, right: 3 });
});

test("keys move within the grid", () => {
  const corner = { row: 499, column: 0 };
  expect(moveCell(grid, corner, "ArrowDown", 9)).toEqual(corner);
  expect(moveCell(grid, corner, "PageUp", 9)).toEqual({ row: 490, column: 0 });
  expect(moveCell(grid, corner, "End", 9)).toEqual({ row: 499, column: 199 });
  expect(moveCell(grid, corner, "x", 9)).toBeNull();
});
