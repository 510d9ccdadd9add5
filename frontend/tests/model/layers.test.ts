import { expect, test } from "vitest";
import { columnAt, columnsOf, pixelColumns, stepAxis } from "../../src/model/layers/axis";
import {
  Derived, INFINITE, mediansBefore, medianWithout, NAN, NOTHING, VALUE, vsPast,
} from "../../src/model/layers/derive";
import { cellText, layerScale, worstAt, worstLine } from "../../src/model/layers/scale";
import { growLayers, openByItself, patternOf, visibleRows, wayTo } from "../../src/model/layers/tree";

function chance(seed: number): () => number {
  let state = seed;
  return () => ((state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31);
}

const median = (numbers: readonly number[]): number => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

test.each([1, 2, 3, 4, 5, 6, 7, 8])("medians of the past are those of sorting again and again (%i)", (seed) => {
  const next = chance(seed);
  const values = Float32Array.from({ length: 60 }, () => Math.round((next() - 0.5) * (seed % 2 ? 8 : 1e6)));
  const states = Uint8Array.from(values, () => (next() < 0.8 ? VALUE : NAN));
  const found = mediansBefore({ values, states });
  for (let column = 0; column < values.length; column++) {
    const past = [...values].slice(0, column).filter((_, i) => states[i] === VALUE);
    if (states[column] === VALUE && past.length >= 3) expect(found[column]).toBeCloseTo(median(past), 6);
    else expect(found[column]).toBeNaN();
  }
});

test("against the past, from the fourth number on; shares are subtracted", () => {
  const line = (...values: number[]) => ({
    values: Float32Array.from(values), states: Uint8Array.from(values, (value) => (Number.isNaN(value) ? NAN : VALUE)),
  });
  const found = vsPast(line(1, 2, 3, 20, NaN, 2.5), false);
  expect([...found.states]).toEqual([NOTHING, NOTHING, NOTHING, VALUE, NAN, VALUE]);
  expect(found.values[3]).toBeCloseTo(1); // 20 ÷ 2
  expect(found.values[5]).toBeCloseTo(0); // 2.5 ÷ the median of 1, 2, 3, 20
  expect(vsPast(line(0.1, 0.1, 0.1, 0.9), true).values[3]).toBeCloseTo(0.8);
});

test("the median of the others leaves one out", () => {
  for (const numbers of [[1, 2, 3], [1, 2, 2, 9], [5, 1, 4, 2, 3]]) {
    const sorted = Float64Array.from(numbers).sort();
    numbers.forEach((number, i) => {
      expect(medianWithout(sorted, number)).toBe(median(numbers.filter((_, j) => j !== i)));
    });
  }
});

test("blocks are compared with the others, and need two of them", () => {
  const cells = { rows: 3, columns: 2, values: Float32Array.of(1, 1, 10, 1, 100, 1), states: new Uint8Array(6).fill(VALUE) };
  cells.states[5] = INFINITE;
  const derived = new Derived(cells, "blocks", false, () => [0, 1, 2], null);
  expect(derived.line(0).values[0]).toBeCloseTo(Math.log10(1 / 55));
  expect([...derived.line(0).states]).toEqual([VALUE, NOTHING]);
  expect([...derived.line(2).states]).toEqual([VALUE, INFINITE]);
});

const NODES = ["input", "blocks.0.up", "blocks.0", "blocks.1.up", "blocks.1", "head"];
const ROWS = growLayers(
  NODES.map((node, order) => ({ node, role: "", pass: 1, order })),
  (address) => ({ blocks: "ModuleList", head: "Linear" })[address] ?? "",
);

test("rows are nested by module, and a list of modules is passed through", () => {
  expect(ROWS.map(({ label, record }) => [label, record])).toEqual([
    ["input", 0], ["blocks.0", 2], ["blocks.1", 4], ["head", 5],
  ]);
  expect(ROWS[1].members).toEqual([2, 1]);
  expect(visibleRows(ROWS, new Set(["blocks.0"])).map(({ node }) => node)).toEqual(
    ["input", "blocks.0", "blocks.0.up", "blocks.1", "head"]);
  expect(wayTo(ROWS, "blocks.1.up")).toEqual(["blocks.1"]);
});

test("what is open by itself fits, with the way to a finding and the same rows of other blocks", () => {
  expect([...openByItself(ROWS, 9, [])]).toEqual(["blocks.0", "blocks.1"]);
  expect([...openByItself(ROWS, 5, [])]).toEqual([]);
  expect([...openByItself(ROWS, 5, ["blocks.1.up"])]).toEqual(["blocks.1"]);
  expect(patternOf("blocks.3.mlp.act")).toBe("blocks.#.mlp.act");
});

test("modules are opened before passes, which stand in one row beside modules", () => {
  const nodes = [...[1, 2, 3].map((pass) => ["cell", pass] as const), ...[1, 2].map((pass) => ["cell.up", pass] as const)];
  const rows = growLayers(nodes.map(([node, pass], order) => ({ node, role: "", pass, order })), () => "");
  expect(visibleRows(rows, openByItself(rows, 3, [])).map(({ label }) => label)).toEqual(["cell", "up", "3 passes"]);
  expect(visibleRows(rows, openByItself(rows, 20, [])).map(({ label, depth }) => [label, depth])).toEqual([
    ["cell", 0], ["up", 1], ["#1", 2], ["#2", 2], ["3 passes", 1], ["#1", 2], ["#2", 2], ["#3", 2],
  ]);
  expect(rows[0].members).toHaveLength(5);
});

test("columns reach half-way to their neighbours", () => {
  const axis = stepAxis([0, 10, 20, 40], 49.5, 500, false);
  expect([...axis.edges]).toEqual([0, 50, 50, 150, 150, 300, 300, 405]);
  expect([columnAt(axis, 0), columnAt(axis, 149), columnAt(axis, 499)]).toEqual([0, 1, 3]);
  expect(columnsOf(axis, 10, 30)).toEqual([1, 2]);
  expect([...stepAxis([0, 10, 20, 40], 49.5, 400, true).edges]).toEqual([0, 100, 100, 200, 200, 300, 300, 400]);
  expect(stepAxis([0, 10, 20, 40], 49.5, 400, true).x(30)).toBe(300);
});

test("columns narrower than a pixel share it", () => {
  const axis = stepAxis(Array.from({ length: 100 }, (_, i) => i), 99, 10, true);
  const { starts, ends } = pixelColumns(axis, 10);
  expect([starts[0], ends[9]]).toEqual([0, 100]);
  for (let x = 1; x < 10; x++) expect(starts[x]).toBe(ends[x - 1]); // every column is in some pixel
});

test("of several rows the worst is seen: NaN, then infinity, then the one furthest from the middle", () => {
  const cells = { rows: 1, columns: 1, values: new Float32Array(1), states: new Uint8Array(1) };
  const scale = layerScale(cells, [], "past", "log", false);
  const line = (value: number, state = VALUE) => ({ values: Float32Array.of(value), states: Uint8Array.of(state) });
  expect(worstLine([line(0.1), line(-2), line(1)], scale).values[0]).toBe(-2);
  expect(worstLine([line(0, INFINITE), line(-2), line(0, NAN)], scale).states[0]).toBe(NAN);
  expect(worstAt([line(0.1), line(-2), line(1)], 0, scale)).toBe(1);
  expect(worstAt([], 0, scale)).toBe(-1);
});

test("as it is, colours reach from the 2nd to the 98th percentile of the rows that count", () => {
  const values = Float32Array.from({ length: 200 }, (_, i) => (i < 100 ? 10 ** (i / 25) : 1e9));
  const cells = { rows: 2, columns: 100, values, states: new Uint8Array(200).fill(VALUE) };
  const scale = layerScale(cells, [0], "absolute", "log", false);
  expect(scale.low).toBeCloseTo(10 ** (1 / 25), 3);
  expect(scale.high).toBeCloseTo(10 ** (97 / 25), -1);
  expect(layerScale(cells, [0], "absolute", "linear", true)).toMatchObject({ low: 0, high: 1, what: "share" });
  expect(layerScale(cells, [0], "past", "log", false)).toMatchObject({ low: -Math.log10(30), high: Math.log10(30) });
});

test("numbers as people read them", () => {
  expect(cellText(0.391, VALUE, { what: "points" })).toBe("+39 points");
  expect([cellText(0.4871, VALUE, { what: "share" }), cellText(1, NAN, { what: "share" })]).toEqual(["48.7 %", "NaN"]);
});
