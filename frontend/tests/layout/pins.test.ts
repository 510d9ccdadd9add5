import { expect, test } from "vitest";
import { pictureNow } from "../../src/layout/client";
import { pinAt } from "../../src/layout/pins";
import type { Pins } from "../../src/layout/sizes";
import { openAll } from "../../src/model/folding";
import { buildGraph } from "../../src/model/graph";
import { buildScene } from "../../src/model/scene";
import { itemNamed, sketch } from "../scenes";

const source = sketch(
  ["a", "m.x computed m", "m.y computed m", "m.z computed m", "end"],
  [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]],
);
const model = buildGraph(source);
const scene = buildScene(model, openAll(model));

const drawn = (pins: Pins) => pictureNow(scene, pins);

test.each([
  ["n:a", 500, 300],
  ["n:m.y", 260, 240],
  ["n:m.y", -70, -90], // beyond the corner of its box: the box grows to that side
  ["g:m", -300, -20],
])("%s is where it was dropped, relative to the others", (key, dx, dy) => {
  const before = drawn({});
  const item = itemNamed(scene, key);
  const [x, y] = [before.layout.x[item] + dx, before.layout.y[item] + dy];
  const pins: Pins = { [key]: pinAt(before, {}, item, x, y) };
  const after = drawn(pins);
  const other = scene.items.findIndex(({ parent }, i) => parent === scene.items[item].parent && i !== item);
  const shift = (axis: "x" | "y"): number =>
    after.layout[axis][item] - before.layout[axis][item] - (after.layout[axis][other] - before.layout[axis][other]);
  expect(shift("x")).toBeCloseTo(dx, -0.5);
  expect(shift("y")).toBeCloseTo(dy, -0.5);
  expect(Math.min(...after.layout.x)).toBeGreaterThanOrEqual(0);
  expect(Math.min(...after.layout.y)).toBeGreaterThanOrEqual(0);
});

test("dropping a box where it is changes nothing, also when another one has moved the corner", () => {
  const pins: Pins = { "n:m.x": [-100, -50], "n:m.y": [200, 10] };
  const picture = drawn(pins);
  const item = itemNamed(scene, "n:m.y");
  expect(pinAt(picture, pins, item, picture.layout.x[item], picture.layout.y[item])).toEqual([200, 10]);
});

test("edges between boxes that were not moved are shifted with them", () => {
  const { layout } = drawn({ "n:m.x": [-100, -50] });
  scene.edges.forEach(({ from, to }, i) => {
    const [start, end] = [layout.curveStart[i], layout.curveStart[i + 1]];
    expect(layout.curves[start]).toBeCloseTo(layout.x[from] + layout.width[from], 2);
    expect(layout.curves[end - 2]).toBeCloseTo(layout.x[to], 2);
  });
});
