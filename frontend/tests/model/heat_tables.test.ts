import { expect, test } from "vitest";
import { ABSENT, HAS_INF, HAS_NAN, VALUE, type Heat } from "../../src/model/heat";
import {
  heatDifference, heatOfStep, presentIn, presentRows, rowsOfGraph, telling, type TensorRows,
} from "../../src/model/heat_tables";
import { sketch } from "../scenes";

const source = sketch(["a", "a", "b", "weight parameter"]);
const table: TensorRows = {
  rows: 5,
  node: ["weight", "a", "b", "a", "a"],
  role: ["", "", "", "", ""],
  of: ["value", "value", "gradient:loss", "value", "gradient:loss"],
  pass: [1, 2, 1, 1, 1],
};

test("rows are found by node, role and pass, and only those of the chosen aspect", () => {
  expect([...rowsOfGraph(source, table, "value")]).toEqual([3, 1, -1, 0]);
  expect([...rowsOfGraph(source, table, "gradient:loss")]).toEqual([4, -1, 2, -1]);
  expect([...rowsOfGraph(source, table, "update")]).toEqual([-1, -1, -1, -1]);
});

test("rows of a like table are known already; any other table is looked through", () => {
  const rows = rowsOfGraph(source, table, "value");
  expect(rowsOfGraph(source, { ...table, node: [...table.node] }, "value")).toBe(rows);
  for (const other of [
    { ...table, rows: 4 },
    { ...table, pass: [1, 1, 1, 2, 1] },
    { ...table, node: ["b", "a", "b", "a", "a"] },
    { ...table, of: table.of.map(() => "value") },
    { ...table, role: ["x", "", "", "", ""] },
  ]) {
    const found = rowsOfGraph(source, other, "value");
    expect([...found]).toEqual([...rowsOfGraph({ ...source }, other, "value")]);
    expect(found).not.toBe(rows);
  }
  expect([...rowsOfGraph(source, { ...table, pass: [1, 1, 1, 2, 1] }, "value")]).toEqual([1, 3, -1, 0]);
});

test("one step: NaN and infinity are seen although the statistic leaves them out", () => {
  const numbers = { values: [5, 6, 0, NaN, 7], nans: [0, 0, 2, 0, 0], infs: [0, 1, 0, 0, 0] };
  const heat = heatOfStep(Int32Array.of(0, 1, 2, 3, 4, -1), numbers);
  expect([...heat.states]).toEqual([VALUE, HAS_INF, HAS_NAN, ABSENT, VALUE, ABSENT]);
  expect(heat.values[0]).toBe(5);
});

test("A − B only where both have something; what is broken in either stays visible", () => {
  const of = (values: number[], states: number[]): Heat =>
    ({ values: Float64Array.from(values), states: Uint8Array.from(states) });
  const a = of([5, 1, 1, 1], [VALUE, VALUE, HAS_NAN, ABSENT]);
  const b = of([2, 1, 1, 1], [VALUE, HAS_INF, VALUE, VALUE]);
  const difference = heatDifference(a, b);
  expect([...difference.states]).toEqual([VALUE, HAS_INF, HAS_NAN, ABSENT]);
  expect(difference.values[0]).toBe(3);
});

test("the gradient of a loss by itself does not stretch the scale, unless there is nothing else", () => {
  const losses = sketch(["a", "total loss"]);
  const both: Heat = { values: Float64Array.of(1e-5, 1), states: Uint8Array.of(VALUE, VALUE) };
  const none = new Uint8Array(2);
  expect([...telling(both, losses, "gradient:total", none).states]).toEqual([VALUE, ABSENT]);
  expect([...telling(both, losses, "value", none).states]).toEqual([VALUE, VALUE]);
  expect([...telling(both, losses, "value", Uint8Array.of(0, 1)).states], "labels, ids").toEqual([VALUE, ABSENT]);
  const alone: Heat = { values: Float64Array.of(NaN, 1), states: Uint8Array.of(ABSENT, VALUE) };
  expect(telling(alone, losses, "gradient:total", none)).toBe(alone);
});

test("what a step lacks is known from its graph, or from its numbers", () => {
  expect(presentIn(3, Uint32Array.of(0, 2))).toEqual(Uint8Array.of(1, 0, 1));
  expect(presentIn(3, Uint32Array.of(2, 0, 1))).toBe(null);
  expect(presentIn(3, undefined)).toBe(null);
  expect(presentRows(source, { ...table, rows: 3 })).toEqual(Uint8Array.of(0, 1, 1, 1));
});
