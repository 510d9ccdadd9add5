/** Marks on boxes: on what is seen of a node, the worst on top, in words for those who do not see them. */
import { expect, test } from "vitest";
import { recurrentNetwork } from "../networks";
import { itemMarks, paintMark, severityColor } from "../../src/draw/graph_marks";
import { graphState, NOTHING_SELECTED } from "../../src/draw/graph_state";
import type { Theme } from "../../src/draw/theme";
import { twinItems } from "../../src/draw/twin";
import type { Marks, NodeMark } from "../../src/model/findings";
import { buildGraph } from "../../src/model/graph";
import { KINDS } from "../../src/model/source";
import { pictureOf } from "../scenes";

const model = buildGraph(recurrentNetwork());
const closed = pictureOf(model.source, new Set());
const open = pictureOf(model.source, new Set(model.groups.map(({ address }) => address)));
const group = model.groups.find(({ nodes, id }) => id > 0 && nodes.length > 1);
const [first, second] = (group?.nodes ?? []).map((node) => model.nodes[node].name);
const mark = (severity: NodeMark["severity"], begins: boolean, word: string): NodeMark => ({
  severity, begins, words: [word],
});
const marks: Marks = new Map([
  [first, mark("error", true, "dead units")], [second, mark("warning", false, "as there")],
  ["nobody", mark("error", true, "not in the graph")],
]);
const theme = {
  scheme: "light", panelRgb: [255, 255, 255], error: "<error>", warning: "<warning>", notice: "<notice>",
  panel: "<panel>", kinds: Object.fromEntries(KINDS.map((kind) => [kind, "red"])),
} as unknown as Theme;

test("open, every node has its own mark; closed, the group has all of them", () => {
  const apart = itemMarks(open.scene, marks);
  expect(apart.map(({ words }) => words)).toEqual([["as there"], ["dead units"]]);
  const together = itemMarks(closed.scene, marks);
  expect(together).toHaveLength(1);
  expect(together[0]).toMatchObject({ severity: "error", begins: true, words: ["dead units", "as there"] });
  expect(closed.scene.items[together[0].item].address).not.toBe("");
});

test("they are derived anew only when the picture or the marks change", () => {
  const input = {
    picture: open, theme, heat: null, scale: null, selection: NOTHING_SELECTED, allEdges: false, present: null, marks,
  };
  const state = graphState(input, null);
  expect(state.itemMarks).toHaveLength(2);
  expect(graphState({ ...input, allEdges: true }, state).itemMarks).toBe(state.itemMarks);
  expect(graphState({ ...input, marks: new Map() }, state).itemMarks).toEqual([]);
  expect(graphState({ ...input, marks: null }, null).itemMarks).toEqual([]);
  const labels = twinItems(state, 1000).map(({ label }) => label);
  expect(labels.filter((label) => label.endsWith(", error: dead units"))).toHaveLength(1);
  expect(labels.filter((label) => label.includes("warning: as there"))).toHaveLength(1);
});

test("a severity is a colour and a shape", () => {
  const drawn = (severity: NodeMark["severity"]): { calls: string[]; texts: string[] } => {
    const [calls, texts]: [string[], string[]] = [[], []];
    const context = new Proxy({} as Record<string, unknown>, {
      get: (_, name: string) => (...given: unknown[]) => {
        calls.push(name);
        if (name === "fillText") texts.push(String(given[0]));
      },
    });
    paintMark(context as unknown as CanvasRenderingContext2D, theme, severity, true, 0, 0, 8);
    return { calls, texts };
  };
  expect(drawn("error").calls).toContain("arc");
  for (const other of ["warning", "info"] as const) expect(drawn(other).calls).not.toContain("arc");
  expect(drawn("info").calls).toContain("rect");
  expect([drawn("error").texts, drawn("info").texts]).toEqual([["!"], ["i"]]);
  expect(new Set((["info", "warning", "error"] as const).map((word) => severityColor(theme, word))).size).toBe(3);
});
