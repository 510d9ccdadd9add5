import { expect, test } from "vitest";
import { ABSENT, HAS_INF, HAS_NAN, VALUE, type Heat } from "../../src/model/heat";
import {
  heatAgainstPast, heatDifference, heatOfMatrix, heatOfStep, inDeviations, inFactors, pastPlaces, pastScale,
  presentIn, presentRows, rowsOfGraph, telling, type StepMatrix, type TensorRows,
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

function matrixOf(...rows: number[][]): StepMatrix {
  return {
    rows: rows.length,
    node: rows.map((_, i) => `n${i}`),
    role: rows.map(() => ""),
    of: rows.map(() => "value"),
    pass: rows.map(() => 1),
    ordinals: rows[0].map((_, i) => 10 * i),
    place: (ordinal) => (ordinal % 10 ? -1 : ordinal / 10),
    values: (row) => Float32Array.from(rows[row]),
  };
}

test("one column of the matrix is one step", () => {
  const matrix = matrixOf([1, 2, 3], [NaN, 5, 6]);
  const rows = Int32Array.of(1, 0, -1);
  expect([...heatOfMatrix(rows, matrix, 0).states]).toEqual([ABSENT, VALUE, ABSENT]);
  expect([...heatOfMatrix(rows, matrix, 20).values.slice(0, 2)]).toEqual([6, 3]);
  expect([...heatOfMatrix(rows, matrix, 7).states]).toEqual([ABSENT, ABSENT, ABSENT]);
});

test("a long past is thinned evenly and keeps its newest step", () => {
  expect(pastPlaces([0, 2, 4, 6], 4)).toEqual([0, 2]);
  const many = pastPlaces(Array.from({ length: 1000 }, (_, i) => i), 900);
  expect(many).toHaveLength(32);
  expect(many.at(-1)).toBe(899);
  expect(many[0]).toBeLessThan(40);
});

test("against its past: doublings of what cannot be negative, deviations of what can", () => {
  const matrix = matrixOf([1, 1, 1, 8], [4, 4, 4, 1], [0, 0, 0, 3], [-1, 0, 1, 5], [NaN, NaN, NaN, 2]);
  const rows = Int32Array.of(0, 1, 2, 3, 4);
  const now = heatOfMatrix(rows, matrix, 30);
  const past = [0, 1, 2];
  const factors = heatAgainstPast(now, rows, matrix, past, false);
  expect([factors.values[0], factors.values[1]]).toEqual([3, -2]);
  expect(factors.values[2]).toBe(20); // from nothing to something: as much as can be said
  expect([...factors.states]).toEqual([VALUE, VALUE, VALUE, VALUE, ABSENT]);
  const moved = heatAgainstPast(now, rows, matrix, past, true);
  expect(moved.values[3]).toBeCloseTo(5 / (1 / 1.349));
  expect(heatAgainstPast(now, rows, matrix, [], false).states.every((state) => state === ABSENT)).toBe(true);
});

test("changes are written as factors and deviations", () => {
  expect([3, -1, 0, 0.0001, 10].map((value) => inFactors(value, 2))).toEqual(["×8", "÷2", "×1", "×1", "×1024"]);
  expect(inDeviations(-2.5, 2)).toBe("−2.5 σ");
});

test("the scale of changes is round and never narrower than a factor of two", () => {
  const heat = (words: Heat["words"], ...values: number[]): Heat =>
    ({ values: Float64Array.from(values), states: new Uint8Array(values.length).fill(VALUE), words: words as never });
  expect(pastScale(heat(inFactors, 0.1, -0.2))).toMatchObject({ kind: "diverging", low: -1, high: 1 });
  expect(pastScale(heat(inFactors, 0.1, -2.3)).high).toBe(3);
  expect(pastScale(heat(inDeviations, 0.1)).high).toBe(3);
  expect(pastScale(heat(inFactors, 4)).place(-2)).toBe(0.25);
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
  expect([...telling(both, losses, "gradient:total").states]).toEqual([VALUE, ABSENT]);
  expect(telling(both, losses, "value")).toBe(both);
  const alone: Heat = { values: Float64Array.of(NaN, 1), states: Uint8Array.of(ABSENT, VALUE) };
  expect(telling(alone, losses, "gradient:total")).toBe(alone);
});

test("what a step lacks is known from its graph, or from its numbers", () => {
  expect(presentIn(3, Uint32Array.of(0, 2))).toEqual(Uint8Array.of(1, 0, 1));
  expect(presentIn(3, Uint32Array.of(2, 0, 1))).toBe(null);
  expect(presentIn(3, undefined)).toBe(null);
  expect(presentRows(source, { ...table, rows: 3 })).toEqual(Uint8Array.of(0, 1, 1, 1));
});
