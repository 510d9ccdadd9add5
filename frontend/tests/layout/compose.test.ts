import { describe, expect, test } from "vitest";
import { flatNetwork, recurrentNetwork, tinyNetwork, transformer } from "../../gallery/networks";
import { pictureNow, type Picture } from "../../src/layout/client";
import { pointOn } from "../../src/layout/curves";
import { LevelMemo } from "../../src/layout/level";
import { HEADER, PADDING } from "../../src/layout/types";
import { defaultOpen, openAll } from "../../src/model/folding";
import { buildGraph } from "../../src/model/graph";
import { buildScene } from "../../src/model/scene";
import { itemNamed, pictureOf, sketch } from "../scenes";

const pictures: Record<string, () => Picture> = {
  tiny: () => pictureOf(tinyNetwork()),
  recurrent: () => pictureOf(recurrentNetwork()),
  transformer: () => pictureOf(transformer(6)),
  "transformer, closed": () => pictureOf(transformer(6), defaultOpen(buildGraph(transformer(6)))),
  experts: () => pictureOf(transformer(2, 5)),
  flat: () => pictureOf(flatNetwork(90)),
};

describe.each(Object.entries(pictures))("%s", (_, make) => {
  const { scene, layout } = make();
  const { x, y, width, height, curves, curveStart, back } = layout;
  const SLACK = 0.01;

  test("boxes lie inside the box around them", () => {
    scene.items.forEach(({ parent }, i) => {
      if (parent < 0) return;
      expect(x[i]).toBeGreaterThanOrEqual(x[parent] + PADDING - SLACK);
      expect(y[i]).toBeGreaterThanOrEqual(y[parent] + HEADER - SLACK);
      expect(x[i] + width[i]).toBeLessThanOrEqual(x[parent] + width[parent] - PADDING + SLACK);
      expect(y[i] + height[i]).toBeLessThanOrEqual(y[parent] + height[parent] - PADDING + SLACK);
    });
  });

  test("boxes of one level do not overlap", () => {
    scene.items.forEach((a, i) => {
      scene.items.forEach((b, j) => {
        if (j <= i || a.parent !== b.parent) return;
        const apart =
          x[i] + width[i] <= x[j] + SLACK || x[j] + width[j] <= x[i] + SLACK ||
          y[i] + height[i] <= y[j] + SLACK || y[j] + height[j] <= y[i] + SLACK;
        expect(apart, `${a.key} and ${b.key}`).toBe(true);
      });
    });
  });

  test("edges begin and end on the borders of their boxes, on the right sides", () => {
    scene.edges.forEach(({ from, to }, e) => {
      const [start, end] = [curveStart[e], curveStart[e + 1]];
      expect((end - start - 2) % 6).toBe(0);
      expect(curves[start]).toBeCloseTo(back[e] ? x[from] : x[from] + width[from], 1);
      expect(curves[end - 2]).toBeCloseTo(back[e] ? x[to] + width[to] : x[to], 1);
      expect(curves[start + 1]).toBeCloseTo(y[from] + height[from] / 2, 1);
      expect(curves[end - 1]).toBeCloseTo(y[to] + height[to] / 2, 1);
    });
  });

  test("no edge runs through a box that is not its own", () => {
    const through: string[] = [];
    scene.edges.forEach(({ from, to }, e) => {
      const pieces = (curveStart[e + 1] - curveStart[e] - 2) / 6;
      for (let t = 0; t < pieces; t += 0.04) {
        const [px, py] = pointOn(curves, curveStart[e], t);
        scene.items.forEach((item, i) => {
          if (item.open || i === from || i === to) return;
          const inside = px > x[i] + 2 && px < x[i] + width[i] - 2 && py > y[i] + 2 && py < y[i] + height[i] - 2;
          if (inside) through.push(`${scene.items[from].key} → ${scene.items[to].key} through ${item.key}`);
        });
      }
    });
    expect([...new Set(through)]).toEqual([]);
  });
});

test("an edge against the flow runs to the left", () => {
  const source = sketch(["a", "b", "a"], [[0, 1], [1, 2]]);
  const { scene, layout } = pictureOf(source);
  const [a, b] = [itemNamed(scene, "n:a"), itemNamed(scene, "n:b")];
  expect(layout.x[a]).toBeLessThan(layout.x[b]);
  const backwards = scene.edges.findIndex((edge) => edge.from === b);
  expect([...layout.back]).toEqual(scene.edges.map((_, i) => (i === backwards ? 1 : 0)));
});

test("equal blocks are laid out once", () => {
  const memo = new LevelMemo();
  const model = buildGraph(transformer(40));
  pictureNow(buildScene(model, openAll(model)), {}, memo);
  expect(memo.misses).toBeLessThan(20);
  expect(memo.hits).toBeGreaterThan(300);
});

test("the same scene always gives the same picture", () => {
  const [a, b] = [pictureOf(recurrentNetwork()).layout, pictureOf(recurrentNetwork()).layout];
  expect(a.x).toEqual(b.x);
  expect(a.curves).toEqual(b.curves);
});

test("opening one group leaves the inside of the others as it was", () => {
  const model = buildGraph(transformer(4));
  const open = defaultOpen(model);
  const inside = (more: string[]): number[] => {
    const { scene, layout } = pictureNow(buildScene(model, new Set([...open, "transformer.h.0", ...more])));
    const group = itemNamed(scene, "g:transformer.h.0");
    return scene.items.flatMap((item, i) => (item.parent === group ? [layout.x[i] - layout.x[group]] : []));
  };
  expect(inside([])).toEqual(inside(["transformer.h.2"]));
});

test("pins go by the key of an item, relative to the inside of its group", () => {
  const model = buildGraph(recurrentNetwork());
  const { scene, layout } = pictureNow(buildScene(model, defaultOpen(model)), { "n:memory.first": [500, 260] });
  const [group, pinned] = [itemNamed(scene, "g:memory"), itemNamed(scene, "n:memory.first")];
  expect(layout.x[pinned] - layout.x[group]).toBeCloseTo(500 + PADDING);
  expect(layout.y[pinned] - layout.y[group]).toBeCloseTo(260 + HEADER);
});

test("an empty graph has an empty picture", () => {
  const { layout } = pictureOf(sketch([]));
  expect([layout.totalWidth, layout.totalHeight, layout.curves.length]).toEqual([0, 0, 0]);
});

test("three thousand nodes in one flat heap are placed all the same", () => {
  const { scene, layout } = pictureOf(flatNetwork(3000));
  expect(scene.items).toHaveLength(3000);
  expect(layout.totalWidth / layout.totalHeight).toBeLessThan(4);
}, 20_000);
