import { expect, test } from "vitest";
import { transformer } from "../networks";
import {
  bringIntoView, fitCamera, keepInPlace, LARGEST_SCALE, pan, toScreen, toWorld, visibleArea, zoomAt,
} from "../../src/draw/camera";
import { edgeExtents, edgesIn, itemsIn } from "../../src/draw/culling";
import { cameraFromMinimap, minimapFit } from "../../src/draw/minimap";
import { pictureOf } from "../scenes";

const viewport = { width: 800, height: 600 };
const insets = { top: 50, right: 10, bottom: 30, left: 20 };

test("fitting shows everything that can be read, clear of the controls, and does not blow small graphs up", () => {
  const area = { x: 100, y: 50, width: 1000, height: 600 };
  const camera = fitCamera(area, viewport, insets);
  const [left, top] = toScreen(camera, area.x, area.y);
  const [right, bottom] = toScreen(camera, area.x + area.width, area.y + area.height);
  expect(left).toBeGreaterThanOrEqual(20 - 1e-6);
  expect(top).toBeGreaterThanOrEqual(50 - 1e-6);
  expect(right).toBeLessThanOrEqual(790 + 1e-6);
  expect(bottom).toBeLessThanOrEqual(570 + 1e-6);
  expect(fitCamera({ x: 0, y: 0, width: 50, height: 20 }, viewport, insets).scale).toBe(1.25);
});

test("what is too high is fitted from its top, what is too wide around its entry, and stays readable", () => {
  const high = fitCamera({ x: 0, y: 50, width: 300, height: 9000 }, viewport, insets);
  expect(high.scale).toBe(0.7);
  expect(toScreen(high, 0, 50)[1]).toBeCloseTo(50);
  const wide = fitCamera({ x: 0, y: 0, width: 9000, height: 100 }, viewport, insets, 4000);
  expect(wide.scale).toBe(0.7);
  expect(toScreen(wide, 4000, 0)[0]).toBeCloseTo(20 + 770 / 2);
});

test("zooming keeps the point below the pointer, within limits", () => {
  const camera = { x: 10, y: 20, scale: 0.5 };
  const before = toWorld(camera, 300, 200);
  const after = toWorld(zoomAt(camera, 1.7, 300, 200), 300, 200);
  expect(after[0]).toBeCloseTo(before[0]);
  expect(after[1]).toBeCloseTo(before[1]);
  expect(zoomAt(camera, 1e9, 0, 0).scale).toBe(LARGEST_SCALE);
});

test("panning moves by pixels of the screen", () => {
  const camera = pan({ x: 0, y: 0, scale: 0.5 }, 100, -50);
  expect(toScreen(camera, 0, 0)).toEqual([100, -50]);
});

test("what is in view stays where it is, what is not comes in by the shortest way", () => {
  const camera = { x: 0, y: 0, scale: 1 };
  const box = { x: 300, y: 300, width: 100, height: 40 };
  expect(bringIntoView(camera, box, viewport, insets)).toEqual(camera);
  expect(bringIntoView(camera, { ...box, x: 900 }, viewport, insets)).toEqual({ scale: 1, x: 210, y: 0 });
  expect(bringIntoView(camera, { ...box, y: -100 }, viewport, insets)).toEqual({ scale: 1, x: 0, y: -150 });
  expect(bringIntoView({ ...camera, scale: 0.05 }, box, viewport, insets).scale).toBeGreaterThan(0.5);
});

test("a box that is folded stays in its place on the screen", () => {
  const camera = { x: 5, y: 6, scale: 0.7 };
  const before = { x: 100, y: 100, width: 10, height: 10 };
  const after = { x: 340, y: 60, width: 500, height: 300 };
  expect(toScreen(keepInPlace(camera, before, after), after.x, after.y)).toEqual(toScreen(camera, before.x, before.y));
});

test("culling finds exactly what a slow look at everything finds", () => {
  const { scene, layout } = pictureOf(transformer(8));
  const { x, y, width, height } = layout;
  for (const [left, top, size] of [[0, 0, 600], [900, 500, 900], [2000, 100, 300], [-500, -500, 100], [0, 0, 1e5]]) {
    const area = { x: left, y: top, width: size, height: size };
    const touches = (i: number): boolean =>
      x[i] <= left + size && x[i] + width[i] >= left && y[i] <= top + size && y[i] + height[i] >= top;
    expect(itemsIn(scene, layout, area)).toEqual(scene.items.flatMap((_, i) => (touches(i) ? [i] : [])));
  }
});

test("edges out of view are left out, all others are kept", () => {
  const { layout, scene } = pictureOf(transformer(8));
  const extents = edgeExtents(layout);
  expect(edgesIn(extents, { x: -1e4, y: -1e4, width: 1e5, height: 1e5 })).toHaveLength(scene.edges.length);
  expect(edgesIn(extents, { x: -900, y: -900, width: 10, height: 10 })).toEqual([]);
  const { from } = scene.edges[7];
  const area = { x: layout.x[from], y: layout.y[from] + layout.height[from] - 1, width: layout.width[from], height: 2 };
  expect(edgesIn(extents, area)).toContain(7);
});

test("a click on the map centres the stage there", () => {
  const whole = { x: 0, y: 0, width: 4000, height: 1000 };
  const size = { width: 168, height: 96 };
  const camera = { x: 0, y: 0, scale: 0.5 };
  const fit = minimapFit(whole, size);
  const moved = cameraFromMinimap(whole, size, fit.x + 3000 * fit.scale, fit.y + 400 * fit.scale, camera, viewport);
  const view = visibleArea(moved, viewport);
  expect([view.x + view.width / 2, view.y + view.height / 2]).toEqual([expect.closeTo(3000), expect.closeTo(400)]);
});
