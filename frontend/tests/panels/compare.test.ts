import { expect, test } from "vitest";
import { STATISTICS } from "../../src/api/types";
import { comparedNumbers, sideNames, valuesDifference, type Side } from "../../src/panels/compare/sides";
import { relaxedSentences } from "../../src/panels/tensor/notices";
import { axisNames, rawChoice, wishOf } from "../../src/panels/tensor/values_choice";
import { NO_LOOK, NOTHING_SHOWN } from "../../src/state/look";

const shown = { ...NOTHING_SHOWN, trial: "t", node: "n", of: "value", step: 4, type: "long", role: "", pass: 1 };
const numbers: Record<string, number> = { mean: 3, std: NaN, nans: 0, count: 6 };
const side = (part: Partial<Side> = {}): Side => ({
  shown, number: (name) => numbers[name] ?? 0, samples: null, raw: null, units: null, ...part,
});
const raw = (data: number[], shape: number[], samples: number[] | null) => ({
  data: Float32Array.from(data), shape, samples, dtype: "float32",
});
const units = (mean: number[]) => {
  const values = Float64Array.from(mean);
  return { shape: [mean.length], mean: values, std: values, abs_max: values };
};

test("statistics of both sides, without what nobody has", () => {
  const sample = { sample: Float64Array.of(7), mean: Float64Array.of(1), nans: Float64Array.of(0) };
  const rows = comparedNumbers(side(), side({ shown: { ...shown, sample: 7 }, samples: sample }), STATISTICS);
  const row = (name: string) => rows.find((each) => each.name === name);
  expect(row("mean")).toMatchObject({ a: 3, b: 1, difference: 2 });
  expect(row("std")).toBeUndefined();
  expect(row("nans")).toBeUndefined();
  expect(row("count")).toMatchObject({ a: 6, b: null, difference: null });
});

test("raw values of one step are subtracted sample by sample", () => {
  const [a, b] = [side({ raw: raw([5, 6], [2, 1], [0, 1]) }), side({ raw: raw([1, 1], [2, 1], [1, 0]) })];
  expect(valuesDifference(a, b, "mean").found?.data).toEqual(Float32Array.of(4, 5));
});

test("samples of other steps are other inputs: units over the batch are compared", () => {
  const a = side({ raw: raw([5], [1, 1], [0]), units: units([1, 2]) });
  const b = side({ raw: raw([5], [1, 1], [0]), units: units([1, 4]), shown: { ...shown, step: 9 } });
  const { found, title, note } = valuesDifference(a, b, "abs_max");
  expect(found?.data).toEqual(Float32Array.of(0, -2));
  expect(title).toBe("abs max of every unit, A − B");
  expect(note).toContain("different inputs");
});

test("one sample on each side", () => {
  const both = raw([1, 2, 3, 4], [2, 2], [5, 6]);
  const a = side({ raw: both, shown: { ...shown, sample: 5 } });
  const b = side({ raw: both, shown: { ...shown, sample: 6 } });
  expect(valuesDifference(a, b, "mean").found).toMatchObject({ shape: [2], data: Float32Array.of(-2, -2) });
});

test("nothing to subtract is said", () => {
  expect(valuesDifference(side({ raw: raw([1], [1], null) }), side(), "mean")).toMatchObject({
    found: null, note: expect.stringContaining("of B were not kept") as string,
  });
  const [a, b] = [side({ raw: raw([1], [1], null) }), side({ raw: raw([1, 2], [2], null) })];
  expect(valuesDifference(a, b, "mean").note).toContain("[1] and [2]");
});

test("sides are called by what tells them apart", () => {
  const other = { ...shown, step: 12000, sample: 3 };
  expect(sideNames(shown, other)).toEqual(["step 4, whole batch", "step 12\u202f000, sample 3"]);
  expect(sideNames(shown, shown)).toEqual(["", ""]);
});

test("the chosen axes are kept where they fit", () => {
  const wish = { axes: [2, 1], index: [0, 0, 9] };
  expect(rawChoice([4, 5, 6], wish, -1)).toEqual({ rows: 2, columns: 1, at: [0, 0, 5] });
  expect(rawChoice([4, 5], wish, -1)).toEqual({ rows: 0, columns: 1, at: [0, 0] });
  expect(rawChoice([], wish, -1)).toEqual({ rows: -1, columns: -1, at: [] });
});

test("one sample shows its own axes; a vector stays among the others", () => {
  const none = { axes: null, index: [] };
  expect(rawChoice([4, 5, 6], none, 2)).toEqual({ rows: 1, columns: 2, at: [2, 0, 0] });
  expect(rawChoice([4, 6], none, 2)).toEqual({ rows: 0, columns: 1, at: [2, 0] });
  expect(wishOf([4, 5, 6], { rows: 1, columns: 2, at: [2, 0, 0] }, 2).axes).toBeNull();
  expect(wishOf([4, 5, 6], { rows: 0, columns: 2, at: [2, 0, 0] }, 2).axes).toEqual([0, 2]);
});

test("axes are called as in the tensor that was recorded", () => {
  expect(axisNames(3, 1, true)).toEqual(["sample", "axis 0", "axis 2"]);
  expect(axisNames(2, -1, false)).toEqual(["axis 0", "axis 1"]);
});

const recorded = () => ({ kind: "input", recorded: ["value"], anywhere: ["value", "gradient:total"], noGradient: [] });

test("a choice that gave way is explained", () => {
  const wanted = { ...NO_LOOK, node: "n", of: "gradient:total", sample: 90 };
  const told = relaxedSentences(wanted, { ...shown, relaxed: ["of", "sample"] }, recorded);
  expect(told[0]).toContain("`requires_grad` is False");
  expect(told[0]).toContain("Its value is shown instead");
  expect(told[1]).toContain("no sample 90");
  const weight = () => ({ ...recorded(), kind: "parameter" });
  expect(relaxedSentences(wanted, { ...shown, relaxed: ["sample"] }, weight)[0]).toContain("belongs to all samples");
  expect(relaxedSentences(wanted, { ...shown, relaxed: [] }, recorded)).toEqual([]);
});
