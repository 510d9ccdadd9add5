import { expect, test } from "vitest";
import { recurrentNetwork, transformer } from "../networks";
import { cellRange, recordAt, Strips } from "../../src/draw/cells";
import { hitTest } from "../../src/draw/hit";
import { walk } from "../../src/draw/walking";
import { buildGraph } from "../../src/model/graph";
import { itemNamed, nodeNamed, pictureOf, sketch } from "../scenes";

const model = buildGraph(recurrentNetwork());
const picture = pictureOf(model.source, new Set(["encoder", "memory"]));
const strips = new Strips(picture.scene, null, null);
const at = (key: string, dx: number, dy: number, scale = 1) => {
  const item = itemNamed(picture.scene, key);
  const { x, y, width, height } = picture.layout;
  const hit = hitTest(picture, strips, x[item] + dx * width[item], y[item] + dy * height[item], scale);
  return hit && { key: picture.scene.items[hit.item].key, part: hit.part, record: hit.record };
};

test("the innermost box is hit", () => {
  expect(at("n:encoder", 0.5, 0.4)).toMatchObject({ key: "n:encoder", part: "box" });
  expect(at("g:memory", 0.5, 0.98)).toMatchObject({ key: "g:memory", part: "inside" });
});

test("titles of open groups and corners of closed ones fold", () => {
  const { layout, scene } = picture;
  const open = itemNamed(scene, "g:memory");
  expect(at("g:memory", 0.5, 10 / layout.height[open])).toMatchObject({ key: "g:memory", part: "fold" });
  expect(at("g:memory.gate", 0.97, 0.1)).toMatchObject({ key: "g:memory.gate", part: "fold" });
  expect(at("g:memory.gate", 0.3, 0.3)).toMatchObject({ key: "g:memory.gate", part: "box" });
});

test("cells of the strip lead to single passes, unless they are too small to aim at", () => {
  const state = picture.scene.model.nodes[nodeNamed(picture.scene.model, "memory.state")];
  const [first, last] = [at("n:memory.state", 0.08, 0.9), at("n:memory.state", 0.92, 0.9)];
  expect(first).toMatchObject({ part: "cell", record: state.records[0] });
  expect(last).toMatchObject({ part: "cell", record: state.records.at(-1) });
  expect(at("n:memory.state", 0.92, 0.9, 0.2)).toMatchObject({ part: "box", record: -1 });
});

test("nothing is hit outside", () => {
  expect(hitTest(picture, strips, -50, -50, 1)).toBeNull();
});

test("more tensors than pixels share cells, none is left out", () => {
  const large = pictureOf(transformer(60), new Set());
  const item = itemNamed(large.scene, "g:transformer");
  const strip = new Strips(large.scene, null, null).of(large.layout, item);
  if (!strip) throw new Error("no strip");
  expect(strip.cells).toBeLessThan(strip.records.length);
  const covered = Array.from({ length: strip.cells }, (_, cell) => cellRange(strip, cell));
  expect(covered[0][0]).toBe(0);
  expect(covered.at(-1)?.[1]).toBe(strip.records.length);
  for (let i = 1; i < covered.length; i++) expect(covered[i][0]).toBe(covered[i - 1][1]);
  expect(recordAt(strip, strip.x - 5)).toBe(strip.records[0]);
});

test("a strip shows the chosen role of every node inside a closed group", () => {
  const closed = pictureOf(model.source, new Set());
  const item = itemNamed(closed.scene, "g:memory");
  const chosen = (pass: number): number[] => {
    const strip = new Strips(closed.scene, null, pass).of(closed.layout, item);
    return (strip?.records ?? []).map((record) => model.source.nodes[record].pass);
  };
  expect(Math.max(...chosen(7))).toBe(7);
  expect(Math.max(...chosen(1))).toBe(1);
});

const flow = pictureOf(sketch(["in input", "a", "b", "c", "loss loss"], [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]]));
const named = (item: number): string => (item < 0 ? "" : flow.scene.items[item].key.slice(2));
const step = (from: string, direction: "left" | "right" | "up" | "down"): string =>
  named(walk(flow, itemNamed(flow.scene, `n:${from}`), direction));

test("down and up follow edges, left and right go along the row", () => {
  expect(step("loss", "up")).toBe("c");
  expect(["a", "b"]).toContain(step("c", "up"));
  expect(step("in", "up")).toBe("");
  expect(step("loss", "down")).toBe("");
  flow.layout.x[itemNamed(flow.scene, "n:b")] += 200;
  flow.layout.y[itemNamed(flow.scene, "n:b")] = flow.layout.y[itemNamed(flow.scene, "n:a")];
  expect(step("a", "right")).toBe("b");
  expect(step("b", "left")).toBe("a");
  expect(named(walk(flow, -1, "down"))).toBe("in");
});

test("every box is reached by keys alone", () => {
  for (const each of [flow]) {
    const seen = new Set([walk(each, -1, "down")]);
    for (const item of seen) {
      for (const direction of ["left", "right", "up", "down"] as const) {
        const next = walk(each, item, direction);
        if (next >= 0) seen.add(next);
      }
    }
    expect(seen.size).toBe(each.scene.items.filter((item) => !item.open).length);
  }
});

test("a recurrence is followed only if there is nothing ahead", () => {
  const loop = pictureOf(sketch(["a", "b", "a", "c"], [[0, 1], [1, 2], [1, 3]]));
  const [b, c] = [itemNamed(loop.scene, "n:b"), itemNamed(loop.scene, "n:c")];
  expect(walk(loop, b, "down")).toBe(c);
});
