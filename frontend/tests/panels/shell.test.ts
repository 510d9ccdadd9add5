/** Small things of the frame: the loss below the scrubber, what recording cost, rows of the outline. */
import { expect, test } from "vitest";
import { buildGraph } from "../../src/model/graph";
import type { GraphSourceNode } from "../../src/model/source";
import { shareOfTime } from "../../src/panels/run/facts";
import { lossName, ofWords } from "../../src/panels/shell/facts";
import { outlineRows } from "../../src/panels/shell/outline_rows";
import type { Trial } from "../../src/state/data";

const trial = (part: object): Trial =>
  ({ metrics: [], losses: [], config: {}, created: 100, updated: 200, steps: { seconds: [], time: [] }, ...part }) as unknown as Trial;

test.each([
  [["lr", "loss", "train/loss"], [], "loss"],
  [["lr", "main"], ["main"], "main"],
  [["lr", "loss/main"], ["main"], "loss/main"],
  [["lr", "eval_Loss"], [], "eval_Loss"],
  [["lr", "accuracy"], [], "lr"],
  [[], ["main"], null],
])("of the metrics %o, with losses %o, the scrubber shows %o", (metrics, losses, name) => {
  expect(lossName(trial({ metrics, losses }))).toBe(name);
});

test("what recording cost is a share of the time since the beginning", () => {
  const steps = { seconds: [1, 2], time: [150, 200] };
  expect(shareOfTime(trial({ steps }))).toBeCloseTo(0.03);
  expect(shareOfTime(trial({ steps, config: { endoscope: { recording_seconds: 10 } } })), "thinned steps cost, too").toBeCloseTo(0.1);
  expect(shareOfTime(trial({})), "nothing recorded").toBeNull();
  expect(shareOfTime(trial({ steps, updated: 101, created: 199 })), "clocks that make no sense").toBeNull();
});

test("gradients are named after their loss", () => {
  expect(["value", "gradient:a:b"].map(ofWords)).toEqual(["value", "gradient · a:b"]);
});

test("the outline lists what is open, in the order of first use", () => {
  const node = (name: string, module: string): GraphSourceNode =>
    ({ node: name, role: "", pass: 1, kind: "computed", module, source: "" });
  const nodes = [node("x", ""), node("enc.a", "enc"), node("enc.b", "enc"), node("y", "")];
  const model = buildGraph({ hash: "h", nodes, edges: [[0, 1, []], [1, 2, []], [2, 3, []]] });
  expect(outlineRows(model, new Set()).map((row) => [row.label, row.level, row.size])).toEqual([
    ["x", 0, 1], ["enc", 0, 2], ["y", 0, 1],
  ]);
  expect(outlineRows(model, new Set(["enc"])).map((row) => [row.label, row.level])).toEqual([
    ["x", 0], ["enc", 0], ["a", 1], ["b", 1], ["y", 0],
  ]);
});
