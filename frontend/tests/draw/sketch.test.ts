/** When an image may stand for the graph. Drawing itself is replaced by counting: there is no canvas here. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { transformer } from "../networks";
import { Sketch } from "../../src/draw/graph_sketch";
import { graphState, NOTHING_SELECTED, type GraphInput, type GraphState } from "../../src/draw/graph_state";
import { KINDS } from "../../src/model/source";
import { emptyHeat, fitScale } from "../../src/model/heat";
import { pictureOf } from "../scenes";

let images = 0;
class NoCanvas {
  constructor(readonly width: number, readonly height: number) {
    images++;
  }
  getContext(): unknown {
    return new Proxy({}, { get: () => () => undefined, set: () => true });
  }
}

beforeEach(() => {
  images = 0;
  vi.stubGlobal("OffscreenCanvas", NoCanvas);
});
afterEach(() => vi.unstubAllGlobals());

const theme = { scheme: "light", panelRgb: [255, 255, 255], kinds: Object.fromEntries(KINDS.map((k) => [k, "red"])) };
const picture = pictureOf(transformer(30));
const small = pictureOf(transformer(2));
const input = (more: Partial<GraphInput> = {}): GraphInput => ({
  picture, theme: theme as never, heat: null, scale: null, selection: NOTHING_SELECTED, allEdges: false, present: null,
  ...more,
});
const stateOf = (more: Partial<GraphInput> = {}, before: GraphState | null = null) => graphState(input(more), before);
const far = { x: 0, y: 0, scale: 0.03 };

test("made once for far views of many boxes, and good for other selections and places", () => {
  const sketch = new Sketch();
  const state = stateOf();
  expect(sketch.isReady(state, far, 1)).toBe(false);
  sketch.prepare(state, far, 1);
  sketch.prepare(state, { ...far, x: 500 }, 1);
  expect(images).toBe(1);
  expect(sketch.isReady(stateOf({ selection: { node: 3, role: null, pass: null } }, state), far, 1)).toBe(true);
});

test("not where boxes are few, large on screen, or coloured anew", () => {
  const sketch = new Sketch();
  sketch.prepare(stateOf({ picture: small }), far, 1);
  sketch.prepare(stateOf(), { ...far, scale: 0.5 }, 1);
  expect(images).toBe(0);
  const state = stateOf();
  sketch.prepare(state, far, 1);
  const heat = emptyHeat(picture.scene.model.source.nodes.length);
  for (const more of [{ heat, scale: fitScale([heat]) }, { allEdges: true }, { present: new Uint8Array(9000) }]) {
    expect(sketch.isReady(stateOf(more, state), far, 1)).toBe(false);
  }
  expect(sketch.isReady(state, { ...far, scale: 0.19 }, 8)).toBe(false); // it would be blurred
});
