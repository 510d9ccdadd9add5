/** What the panel of a tensor says: numbers with their spread, curves, and why something is missing. */
import { expect, test } from "vitest";
import { whyNoRaw, whyNoTensor, whyNoSamples, ofText, type Wanted } from "../../src/panels/tensor/reasons";
import { cosinesOf, sampleRows, tilesOf } from "../../src/panels/tensor/summary";
import { curvesOf, nearestStep, timeHistograms } from "../../src/panels/tensor/time_series";

const samples = {
  sample: Float64Array.of(0, 1, 2, 3), mean: Float64Array.of(1, 2, 3, 10), std: Float64Array.of(1, 1, 1, 1),
  abs_max: Float64Array.of(4, 9, 2, 3), zeros: Float64Array.of(0, 5, 10, 5), nans: Float64Array.of(0, 2, 0, 0),
  infs: new Float64Array(4),
};
const whole = (name: string): number => ({ count: 40, zeros: 20, mean: 4, std: 2, abs_max: 9, nans: 2 })[name] ?? 0;
const tile = (sample: number | null, name: string) => tilesOf({ whole, samples, sample }).find((t) => t.name === name);

test("tiles of the batch say how samples differ", () => {
  expect(tile(null, "mean")).toMatchObject({ value: 4, note: "± 3.5" });
  expect(tile(null, "abs max")).toMatchObject({ value: 9, note: "sample 1" });
  expect(tile(null, "zeros")).toMatchObject({ value: 0.5, text: "50 %", note: "≤ 100 %" });
  expect(tile(null, "NaN")).toMatchObject({ value: 2, broken: true, note: "1 sample" });
  expect(tile(null, "infinite")).toBeUndefined();
});

test("tiles of a sample say where the batch is", () => {
  expect(tile(3, "mean")).toMatchObject({ value: 10, note: "z +1.7", hint: "batch: 4 ± 3.54" });
  expect(tile(2, "zeros")).toMatchObject({ value: 1, note: "all 50 %" });
  expect(tile(1, "NaN")).toMatchObject({ value: 2 });
  expect(tile(3, "NaN")).toBeUndefined();
});

test("a sample against the batch", () => {
  const [mean, std] = sampleRows(samples, 3, ["mean", "std"]);
  expect(mean.z).toBeCloseTo((10 - 4) / Math.sqrt(12.5));
  expect(mean.rank).toBe(0.875);
  expect(std.z).toBe(0);
  expect(sampleRows(samples, 77, ["mean"])).toEqual([]);
});

test("cosines of this tensor and this loss only", () => {
  const extra = { cosines: [["a", "", 0, "total", "aux", -0.5], ["b", "", 0, "total", "aux", 0.5]] };
  expect(cosinesOf(extra, "a", "", 0, "gradient:aux")).toMatchObject([{ value: -0.5, note: "to total" }]);
  expect(cosinesOf(extra, "a", "", 0, "value")).toEqual([]);
  expect(cosinesOf({}, "a", "", 0, "gradient:aux")).toEqual([]);
});

const table = {
  steps: Float64Array.of(0, 1, 2, 3), types: ["short", "long", "short", "long"],
  values: { std: Float64Array.of(1, 2, 3, 4) },
};

test("one curve per trial and type; further types are dashed", () => {
  const both = [{ trial: "a", color: "red", table }, { trial: "b", color: "blue", table }];
  const curves = curvesOf(both, "std", null);
  expect(curves.map(({ label, color, dashed }) => [label, color, dashed])).toEqual([
    ["a · short", "red", false], ["a · long", "red", true], ["b · short", "blue", false], ["b · long", "blue", true],
  ]);
  expect(Array.from(curves[1].x)).toEqual([1, 3]);
  expect(Array.from(curves[1].y)).toEqual([2, 4]);
  const one = curvesOf(both.slice(0, 1), "std", "long");
  expect(one.map(({ label, dashed }) => [label, dashed])).toEqual([["long", false]]);
  expect(curvesOf([{ trial: "c", color: "x", table: null }], "std", null)).toEqual([]);
});

test("a click means the nearest recorded step", () => {
  expect(nearestStep([0, 10, 40], 26)).toBe(40);
  expect(nearestStep([0, 10, 40], 25)).toBe(10);
  expect(nearestStep([], 3)).toBeNull();
});

test("histograms over time are in order of steps", () => {
  const [steps, first] = [Float64Array.of(9, 3, 5), Float64Array.of(1, 2, 3)];
  const found = timeHistograms({ rows: 3, steps, types: ["a", "a", "b"], first, counts: () => [1] }, "a");
  expect([...found.steps]).toEqual([3, 9]);
  expect(found.histograms.map(({ first }) => first)).toEqual([2, 1]);
});

const wanted: Wanted = {
  node: "w", of: "gradient:total", step: 4, type: "long", role: null, pass: null, kind: "parameter",
  recorded: ["value"], anywhere: ["value", "gradient:total"], noGradient: [],
};

test("no gradient is not a gradient of zero, and the reason is named", () => {
  expect(whyNoTensor({ ...wanted, noGradient: ["w"] })).toMatch(/never reached it. That is not a gradient of zero/);
  expect(whyNoTensor({ ...wanted, kind: "input" })).toContain("`requires_grad` is False");
  expect(whyNoTensor({ ...wanted, anywhere: ["value"] })).toContain("No gradients were recorded in step 4 (long)");
  expect(whyNoTensor({ ...wanted, recorded: [] })).toContain("`w` was not recorded in step 4");
  expect(whyNoTensor({ ...wanted, of: "update", kind: "computed" })).toContain("Only parameters have updates");
  expect(whyNoTensor({ ...wanted, of: "update" })).toContain("`run.watch(model, optimizer)`");
});

test("raw values: what the recording says comes first", () => {
  const raw = { step: 4, stepHasRaw: false, sample: null, rawSamples: [], hasSamples: true, gap: "" };
  expect(whyNoRaw(raw)).toContain("keep=4");
  const limit = "raw values: 9 bytes are above the limit of 8 for one tensor";
  expect(whyNoRaw({ ...raw, gap: limit })).toContain('keep={"tensor_bytes": …}');
  expect(whyNoRaw({ ...raw, gap: limit, hasSamples: false })).toContain('keep={"parameter_bytes": …}');
  expect(whyNoRaw({ ...raw, stepHasRaw: true, sample: 7, rawSamples: [1, 2] })).toContain("step.decide(samples=[7])");
  expect(whyNoSamples(false, "parameter")).toContain("belongs to all samples alike");
  expect([ofText("parameter"), ofText("gradient:aux")]).toEqual(["value", "gradient · aux"]);
});
