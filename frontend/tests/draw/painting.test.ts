/** What a frame consists of: drawn on a canvas that only takes notes. */
import { expect, test } from "vitest";
import { recurrentNetwork, transformer } from "../networks";
import { wholeArea } from "../../src/draw/camera";
import { paintGraph } from "../../src/draw/graph_paint";
import { graphState, NOTHING_SELECTED, type GraphInput, type GraphState } from "../../src/draw/graph_state";
import type { Theme } from "../../src/draw/theme";
import { selectionSentence, twinItems } from "../../src/draw/twin";
import { buildGraph } from "../../src/model/graph";
import { ABSENT, emptyHeat, fitScale, HAS_NAN, VALUE } from "../../src/model/heat";
import type { Picture } from "../../src/model/scene";
import { KINDS } from "../../src/model/source";
import { nodeNamed, pictureOf } from "../scenes";

const ROLES = ["background", "panel", "raised", "line", "lineStrong", "ink", "inkSoft", "inkFaint", "accent"];
const theme = {
  ...Object.fromEntries(ROLES.map((role) => [role, `<${role}>`])),
  scheme: "light", panelRgb: [255, 255, 255], font: "sans", numberFont: "mono",
  kinds: Object.fromEntries(KINDS.map((kind) => [kind, `<${kind}>`])),
} as unknown as Theme;

interface Notes {
  readonly texts: string[];
  readonly calls: Record<string, number>;
  readonly context: CanvasRenderingContext2D;
}

function notebook(): Notes {
  const texts: string[] = [];
  const calls: Record<string, number> = {};
  const properties: Record<string, unknown> = { font: "" };
  const context = new Proxy(properties, {
    get: (kept, name: string) => {
      if (name === "measureText") return (text: string) => ({ width: 6 * text.length });
      if (name in kept) return kept[name];
      return (...given: unknown[]) => {
        calls[name] = (calls[name] ?? 0) + 1;
        if (name === "fillText") texts.push(String(given[0]));
      };
    },
  });
  return { texts, calls, context: context as unknown as CanvasRenderingContext2D };
}

const viewport = { width: 1000, height: 2400 };
const input = (picture: Picture, more: Partial<GraphInput> = {}): GraphInput => ({
  picture, theme, heat: null, scale: null, selection: NOTHING_SELECTED, allEdges: false, present: null, ...more,
});
const paint = (state: GraphState, scale?: number): Notes => {
  const notes = notebook();
  const { width, height } = wholeArea(state.picture.layout);
  const whole = Math.min(1, viewport.width / width, viewport.height / height);
  paintGraph(notes.context, state, {
    camera: { x: 0, y: 0, scale: scale ?? whole }, viewport, density: 1, hovered: -1, focused: false,
  });
  return notes;
};

const model = buildGraph(recurrentNetwork());
const picture = pictureOf(model.source, new Set(["encoder", "memory"]));
const large = pictureOf(transformer(40));

test("close up every box has its label, far out none has", () => {
  const near = paint(graphState(input(picture), null), 1);
  expect(near.texts).toContain("state");
  expect(near.texts).toContain("▾ memory");
  const far = paint(graphState(input(large), null));
  expect(far.texts.every((text) => text.startsWith("▾"))).toBe(true);
  expect(far.calls["roundRect"] ?? 0).toBeLessThan(5);
});

test("what is out of view is not drawn", () => {
  const state = graphState(input(large, { allEdges: true }), null);
  const [near, far] = [paint(state, 1), paint(state)];
  expect(near.calls["bezierCurveTo"] ?? 0).toBeLessThan(400);
  expect((far.calls["fillRect"] ?? 0) / large.scene.items.length).toBeGreaterThan(0.5);
});

test("only the selected node's edges, or all of them", () => {
  const node = nodeNamed(model, "memory.gate");
  const curves = (more: Partial<GraphInput>): number =>
    paint(graphState(input(picture, more), null), 1).calls["bezierCurveTo"] ?? 0;
  const selection = { node, role: null, pass: null };
  expect(curves({})).toBe(0);
  const own = curves({ selection });
  expect(own).toBeGreaterThan(0);
  expect(curves({ selection, allEdges: true })).toBeGreaterThan(own);
});

test("the value behind the colour is written on the box; NaN is said", () => {
  const heat = emptyHeat(model.source.nodes.length);
  heat.states.fill(VALUE);
  heat.values.fill(0.25);
  const node = model.nodes[nodeNamed(model, "loss")];
  const other = model.nodes[nodeNamed(model, "target")];
  heat.values[node.records[0]] = 1.25e-5;
  heat.states[other.records[0]] = HAS_NAN;
  const OffscreenCanvasBefore = globalThis.OffscreenCanvas;
  globalThis.OffscreenCanvas = class { getContext = () => notebook().context; } as never;
  const { texts } = paint(graphState(input(picture, { heat, scale: fitScale([heat]) }), null), 0.8);
  globalThis.OffscreenCanvas = OffscreenCanvasBefore;
  expect(texts).toContain("1.3e-5");
  expect(texts).toContain("NaN");
  expect(texts).toContain("0.25");
});

test("moving the scrubber derives nothing but shades", () => {
  const heats = [1, 2].map((value) => {
    const heat = emptyHeat(model.source.nodes.length);
    heat.states.fill(VALUE);
    heat.values.fill(value);
    return heat;
  });
  const scale = fitScale(heats);
  const selection = { node: 3, role: null, pass: null };
  const first = graphState(input(picture, { heat: heats[0], scale, selection }), null);
  const second = graphState(input(picture, { heat: heats[1], scale, selection: { ...selection } }), first);
  for (const key of ["strips", "faces", "extents", "dependencies"] as const) expect(second[key]).toBe(first[key]);
  expect(second.shades).not.toEqual(first.shades);
});

test("the twin tells in words what the canvas shows", () => {
  const heat = emptyHeat(model.source.nodes.length);
  heat.states.fill(VALUE);
  heat.values.fill(0.5);
  heat.states[model.nodes[nodeNamed(model, "inputs")].records[0]] = ABSENT;
  const node = nodeNamed(model, "partial sums");
  const selection = { node, role: "sequence 2", pass: 3 };
  const state = graphState(input(picture, { heat, scale: fitScale([heat]), selection }), null);
  const sentence = selectionSentence(state);
  expect(sentence).toContain("partial sums, computed, 64 by 128, role sequence 2, pass 3 of 3, 0.5.");
  expect(sentence).toContain("Computed from memory.state.");
  expect(sentence).toContain("Used by decoder.hidden.");
  const items = twinItems(state);
  expect(items).toHaveLength(picture.scene.items.length);
  expect(items.find((item) => item.key === "n:inputs")?.label).toBe("inputs, input, 64 by 12 by 5, no value");
  expect(items.filter((item) => item.selected).map((item) => item.key)).toEqual(["n:partial sums"]);
  expect(items.find((item) => item.key === "g:memory")).toMatchObject({ expanded: true, level: 1 });
});

test("the twin of a large graph stays small and holds the selected box", () => {
  const node = nodeNamed(large.scene.model, "transformer.h.20.ln_2");
  const state = graphState(input(large, { selection: { node, role: null, pass: null } }), null);
  const items = twinItems(state, 100);
  expect(items).toHaveLength(100);
  expect(items.some((item) => item.selected)).toBe(true);
});
