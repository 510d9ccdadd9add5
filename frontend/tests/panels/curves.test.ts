import { expect, test } from "vitest";
import { durationText, stepTick } from "../../src/panels/curves/axes";
import { columns, extent, nearestPoint, neighbour, readings, type Curve } from "../../src/panels/curves/data";
import { alphaOf } from "../../src/panels/curves/options";
import { axisNote, emptySentence, leftOutNote, summary } from "../../src/panels/curves/sentences";
import { sharedCursor } from "../../src/panels/curves/shared_cursor";
import { ascending, leftOut, lowerBound, nearestPlace, thinned, thinnedBand } from "../../src/panels/curves/thin";
import { withoutOutliers } from "../../src/panels/curves/value_range";

const MANY = 100_000;
const xs = Float64Array.from({ length: MANY }, (_, i) => i);
const window = { from: 0, to: MANY - 1, columns: 500, log: false };
const curve = (x: number[], y: (number | null)[], more: Partial<Curve> = {}): Curve => ({
  label: "a", color: "red", x, y, ...more,
});

test("few points are drawn as they are, with gaps where there is no number", () => {
  const thin = thinned([0, 1, 2, 3], [1, NaN, Infinity, -2], { ...window, to: 3 });
  expect(thin).toEqual({ x: [0, 1, 2, 3], y: [1, null, null, -2] });
  expect(thinned([0, 1, 2], [1, 0, -2], { ...window, to: 2, log: true }).y).toEqual([1, null, null]);
});

test("many points become a few per column, and a lone outlier survives", () => {
  const y = Float64Array.from(xs, (x) => Math.sin(x / 5000));
  y[71_234] = 99;
  const thin = thinned(xs, y, window);
  expect(thin.x.length).toBeLessThan(5 * 502);
  expect(thin.y).toContain(99);
  const at = thin.x[thin.y.indexOf(99)];
  expect(Math.abs(at - 71_234)).toBeLessThanOrEqual(MANY / 500); // within its column
});

test("in every column the extremes, the first and the last value are those of all its points", () => {
  const y = Float64Array.from(xs, (x) => ((x * 7919) % 1013) - 500);
  const thin = thinned(xs, y, window);
  const width = window.to / window.columns;
  for (const column of [0, 1, 77, 499]) {
    const inside = (x: number): boolean => x >= column * width - 1e-9 && x < (column + 1) * width - 1e-9;
    const all = [...y].filter((_, i) => inside(xs[i]));
    const kept = thin.y.filter((_, i) => inside(thin.x[i])) as number[];
    expect([Math.min(...kept), Math.max(...kept)]).toEqual([Math.min(...all), Math.max(...all)]);
    expect([kept[0], kept.at(-1)]).toEqual([all[0], all.at(-1)]);
  }
});

test("x never goes back, and a gap stays a gap", () => {
  const y = Float64Array.from(xs, (x) => (x > 40_000 && x < 60_000 ? NaN : 1));
  const thin = thinned(xs, y, window);
  for (let i = 1; i < thin.x.length; i++) expect(thin.x[i]).toBeGreaterThan(thin.x[i - 1]);
  const inGap = thin.y.filter((_, i) => thin.x[i] > 40_500 && thin.x[i] < 59_500);
  expect(inGap.length).toBeGreaterThan(0);
  expect(inGap.every((value) => value === null)).toBe(true);
});

test("a window shows its part, with a point beyond each end for the line to leave by", () => {
  const thin = thinned([0, 10, 20, 30, 40, 50], [0, 1, 2, 3, 4, 5], { from: 15, to: 32, columns: 100, log: false });
  expect(thin.x[0]).toBe(10);
  expect(thin.x.at(-1)).toBeGreaterThanOrEqual(40);
});

test("a band is as wide as its widest point in a column", () => {
  const low = Float64Array.from(xs, () => -1);
  const high = Float64Array.from(xs, () => 1);
  [low[500], high[501]] = [-8, 9];
  const band = thinnedBand(xs, low, high, window);
  expect(band.x.length).toBeLessThan(504);
  expect(band.low).toContain(-8);
  expect(band.high).toContain(9);
});

test("points that went back are put in order, together with their values", () => {
  const { x, ys } = ascending([0, 5, 2, 3], [[10, 15, 12, 13]]);
  expect([...(x as number[])]).toEqual([0, 2, 3, 5]);
  expect([...(ys[0] as number[])]).toEqual([10, 12, 13, 15]);
});

test("curves with different x share one, and only gaps of their own interrupt them", () => {
  const a = curve([0, 2, 4], [1, null, 3]);
  const b = curve([1, 2, 3], [5, 6, 7]);
  const [x, first, second] = columns([a, b], { from: 0, to: 4, columns: 100, log: false });
  expect(x).toEqual([0, 1, 2, 3, 4]);
  expect(first).toEqual([1, null, null, null, 3]); // the gap reaches from point to point
  expect(second).toEqual([undefined, 5, 6, 7, undefined]); // not a gap: b has no point there
});

test("the nearest points are read", () => {
  expect([lowerBound([1, 3, 5], 3), lowerBound([1, 3, 5], 9)]).toEqual([1, 3]);
  expect([nearestPlace([1, 3, 9], 5.9), nearestPlace([1, 3, 9], 6.1), nearestPlace([], 1)]).toEqual([1, 2, -1]);
  const two = [curve([0, 10], [1, 2]), curve([4], [7])];
  expect(readings(two, 5).map(({ x, value }) => [x, value])).toEqual([[0, 1], [4, 7]]);
  expect(nearestPoint(two, 6)).toBe(4);
  expect(extent(two)).toEqual([0, 10]);
  expect(extent([])).toBeNull();
});

test("keys walk from point to point over all curves and skip what is not drawn", () => {
  const two = [curve([0, 10, 20], [1, NaN, 2]), curve([4], [-7])];
  expect(neighbour(two, 0, 1, false)).toBe(4);
  expect(neighbour(two, 4, 1, false)).toBe(20);
  expect(neighbour(two, 0, 1, true)).toBe(20); // -7 has no place on a log axis
  expect(neighbour(two, 20, -1, false)).toBe(4);
  expect(neighbour(two, 20, 1, false)).toBeNull();
});

test("what is not drawn is said", () => {
  const some = [curve([0, 1, 2, 3], [1, 0, -1, NaN])];
  expect(leftOut(some[0].y)).toEqual({ notFinite: 1, notPositive: 2 });
  expect(leftOutNote(some, true)).toBe("2 values ≤ 0, 1 not finite: not drawn");
  expect(leftOutNote(some, false)).toBe("1 not finite: not drawn");
  expect(emptySentence(some, true)).toBeNull();
  expect(emptySentence([curve([0], [-1])], true)).toContain("logarithmic");
  expect(emptySentence([curve([0], [NaN])], false)).toContain("NaN");
  expect(emptySentence([], false)).toContain("no values");
  expect(summary([curve([0, 12_000], [1, 2])], "step")).toBe("a: step 0 to step 12\u202f000.");
});

test("places on axes are short", () => {
  expect([500, 12_000, 1.5e6, 0.5].map(stepTick)).toEqual(["500", "12k", "1.5M", ""]);
  expect([0, 0.0372, 12.5, 60, 90, 3600, 4800, 86_400 * 2 + 3600].map(durationText)).toEqual([
    "0 s", "37.2 ms", "12.5 s", "1 min", "1 min 30 s", "1 h", "1 h 20 min", "2 d 1 h",
  ]);
});

test("without outliers the axis goes from the 2nd to the 98th percentile, and says what is outside", () => {
  const x = Array.from({ length: 101 }, (_, i) => i);
  const y = x.map((i) => (i === 50 ? 1e6 : i === 51 ? NaN : i / 100));
  const found = withoutOutliers([curve(x, y)], false, null);
  expect(found?.percentiles).toEqual([0.02, 0.99]); // of 100 finite values: the 3rd from below, the 3rd from above
  expect(found?.axis[1]).toBeLessThan(2);
  expect(found?.outside).toBe(1);
  expect(axisNote(found!)).toBe("2nd to 98th percentile, 0.02 to 0.99: 1 value lies outside the axis");
  expect(withoutOutliers([curve(x, y)], false, [60, 100])?.percentiles).toEqual([0.61, 0.99]); // only what is in view
});

test("faint curves and values without a place do not set the axis; a handful has no outlier", () => {
  const x = [0, 1, 2, 3];
  const faint = curve(x, [1e9, 1e9, 1e9, 1e9], { faint: true });
  expect(withoutOutliers([faint, curve(x, [1, 2, 3, 900])], false, null)?.percentiles).toEqual([1, 900]);
  expect(withoutOutliers([curve(x, [-5, 0, 1, 10])], true, null)?.percentiles).toEqual([1, 10]);
  expect(withoutOutliers([curve(x, [NaN, NaN, NaN, NaN])], false, null)).toBeNull();
  const ten = withoutOutliers([curve([...Array(10).keys()], [1, 2, 1, 2, 1, 2, 1, 2, 1, 5000])], false, null);
  expect(ten?.axis[1]).toBeLessThan(3);
});

test("while an owner is highlighted, the others are pale", () => {
  const mine = curve([0], [1], { owner: "one" });
  expect(alphaOf(mine, null)).toBe(1);
  expect(alphaOf(mine, "one")).toBe(1);
  expect(alphaOf(mine, "two")).toBeLessThan(0.3);
  expect(alphaOf({ ...mine, faint: true }, "two")).toBeLessThan(alphaOf({ ...mine, faint: true }, "one"));
});

test("what one plot points at, all hear, once", () => {
  const cursor = sharedCursor();
  const heard: (number | null)[] = [];
  const stop = cursor.listen(() => heard.push(cursor.place()));
  cursor.point(4, {});
  cursor.point(4, {});
  cursor.point(null, {});
  stop();
  cursor.point(7, {});
  expect(heard).toEqual([4, null]);
});
