import { expect, test } from "vitest";
import type { TraceGraph } from "../../src/api/types";
import { ABSENT, emptyHeat, HAS_NAN, VALUE, type Heat } from "../../src/model/heat";
import { pictureOf, type PictureNumbers, type Scene } from "../../src/model/scene";
import { bytesText, countText, secondsText, traceModel, withBoxes } from "../../src/model/trace";

/** x ─► cell (a, b) ─► y, and a weight beside a. */
const GRAPH: TraceGraph = {
  rolled: false,
  node: ["x", "cell.w", "a:1", "b:1", "y"],
  label: ["x", "cell.w", "a:1", "b:1", "y"],
  passNumber: [1, 1, 1, 1, 1],
  kind: ["input", "parameter", "computed", "computed", "output"],
  type: ["input", "parameter", "linear", "relu", "output"],
  shape: [[2], [2, 2], [2], null, [2]],
  source: [-1, -1, 0, 0, -1],
  sources: ["net.py:3"],
  module: [-1, 0, 0, 0, -1],
  modules: [{ address: "cell:1", type: "Cell", label: "cell:1", parent: -1 }],
  edges: [0, 2, 1, 2, 2, 3, 3, 4],
};

/** As the server answers while the cell is closed. */
function closed(): Scene {
  const numbers = {
    head: {
      boxes: 3, edges: 2, tensors: 5, points: 0, width: 1, height: 1, opened: [], addresses: ["cell:1"],
      labels: ["x", "cell:1", "y"], details: ["", "", ""],
    },
    parent: Int32Array.of(-1, -1, -1), tensor: Int32Array.of(0, 3, 4), address: Int32Array.of(-1, 0, -1),
    flags: new Int32Array(3), members: Int32Array.of(0, 1, 0), size: Int32Array.of(1, 3, 1),
    boxOfTensor: Int32Array.of(0, 1, 1, 1, 2), from: Int32Array.of(0, 1), to: Int32Array.of(1, 2),
    back: new Int32Array(2), starts: new Int32Array(3), x: new Float32Array(3), y: new Float32Array(3),
    width: new Float32Array(3), height: new Float32Array(3), entry: new Float32Array(3), points: new Float32Array(0),
  } satisfies PictureNumbers;
  return pictureOf(traceModel(GRAPH), numbers).scene;
}

function heatOf(...values: (number | null)[]): Heat {
  const heat = emptyHeat(values.length);
  values.forEach((value, i) => {
    heat.values[i] = value ?? NaN;
    heat.states[i] = value === null ? ABSENT : VALUE;
  });
  return heat;
}

test("operations stand in the boxes of the server, under its names", () => {
  const model = traceModel(GRAPH);
  expect(model.groups.map(({ address, label, type }) => [address, label, type])).toEqual([
    ["", "", ""], ["cell:1", "cell:1", "Cell"],
  ]);
  expect(model.nodes.map(({ name, group }) => [name, group])).toEqual([
    ["x", 0], ["cell.w", 1], ["a:1", 1], ["b:1", 1], ["y", 0],
  ]);
  expect(model.nodes[2].source).toBe("net.py:3");
  expect(model.nodes[3].shape).toBeNull();
  expect(model.edges).toHaveLength(4);
});

test("rolled, the passes of a layer are one node", () => {
  const node = ["x", "cell.w", "a", "a", "y"];
  const passes = { node, rolled: true, passNumber: [1, 1, 1, 2, 1] };
  const model = traceModel({ ...GRAPH, ...passes, module: [-1, -1, -1, -1, -1], modules: [] });
  expect(model.nodes.map(({ name, passes, recurrent }) => [name, passes, recurrent])).toEqual([
    ["x", 1, false], ["cell.w", 1, false], ["a", 2, true], ["y", 1, false],
  ]);
});

test("a closed box has the sum of what is known of all that is inside", () => {
  const { heat, whole } = withBoxes(closed(), heatOf(1, 2, 4, null, 8), null, true);
  expect([...(whole as Int32Array)]).toEqual([5, 6, 7]);
  expect([...(heat?.values.subarray(5) ?? [])]).toEqual([1, 6, 8]);
});

test("what is NaN in any part is NaN in the sum", () => {
  const heat = heatOf(1, 2, 4, 3, 8);
  heat.states[2] = HAS_NAN;
  expect(withBoxes(closed(), heat, null, true).heat?.states[6]).toBe(HAS_NAN);
});

test("what cannot be added up is that of the result", () => {
  const { heat, whole } = withBoxes(closed(), heatOf(1, 2, 4, 3, 8), null, false);
  expect([...(whole as Int32Array)]).toEqual([-1, 6, -1]);
  expect(heat?.values[6]).toBe(3);
});

test("a closed box stands out if anything in it does", () => {
  const present = Uint8Array.of(0, 0, 1, 0, 0);
  expect([...(withBoxes(closed(), null, present, false).present ?? [])]).toEqual([0, 0, 1, 0, 0, 0, 1, 0]);
});

test("costs are written with their units", () => {
  expect([0, 2.34e-7, 0.0000231, 0.5, 71].map(secondsText)).toEqual(["0 ns", "234 ns", "23.1 µs", "500 ms", "71 s"]);
  expect([0, 1023, 1536, 5 * 2 ** 30].map(bytesText)).toEqual(["0 B", "1023 B", "1.5 KB", "5 GB"]);
  expect([12, 2560, 1.37e6, 2e13].map(countText)).toEqual(["12", "2.56 K", "1.37 M", "20 T"]);
});
