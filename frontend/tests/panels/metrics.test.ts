import { expect, test } from "vitest";
import type { MetricCurve, MetricTable } from "../../src/api/tables";
import type { StepColumns } from "../../src/api/types";
import { nearestStep } from "../../src/panels/metrics/nearest_step";
import { grouped, needHeadings } from "../../src/panels/metrics/groups";
import { lastValues, overlay, plotOf, valuesAt, type TrialMetrics } from "../../src/panels/metrics/plots";
import { factorOf, positionOf, smoothed, windowOf } from "../../src/panels/metrics/smoothing";

test("smoothing is a weighted mean of what came before", () => {
  const values = [3, 1, 4, 1, 5, 9, 2, 6];
  const slow = values.map((_, end) => {
    let [sum, weight] = [0, 0];
    for (let i = 0; i <= end; i++) {
      sum += 0.7 ** (end - i) * values[i];
      weight += 0.7 ** (end - i);
    }
    return sum / weight;
  });
  [...smoothed(values, 0.7)].forEach((value, i) => expect(value).toBeCloseTo(slow[i], 12));
  expect([...smoothed(values, 0)]).toEqual(values);
});

test("gaps stay gaps and do not count", () => {
  const result = smoothed([2, NaN, Infinity, 4], 0.5);
  expect(result[0]).toBe(2);
  expect(result[1]).toBeNaN();
  expect(result[2]).toBe(Infinity);
  expect(result[3]).toBeCloseTo(smoothed([2, 4], 0.5)[1], 12);
});

test("the slider goes over the whole range, and back to where it was", () => {
  expect([factorOf(0), factorOf(100)]).toEqual([0, 0.999]);
  expect(windowOf(factorOf(100))).toBeCloseTo(1000, 6);
  for (const position of [0, 1, 17, 50, 99, 100]) expect(positionOf(factorOf(position))).toBe(position);
});

const metric = (name: string, type: string, values: number[], start = 0): MetricCurve => ({
  name, type,
  steps: Float64Array.from(values, (_, i) => 10 * i),
  times: Float64Array.from(values, (_, i) => start + i),
  values: Float64Array.from(values),
  range: null,
});

function trial(name: string, color: string, start: number): TrialMetrics {
  const loss = [metric("loss", "short", [1, 2], start), metric("loss", "long", [3, 4], start)];
  const lr = metric("lr", "", [0.1, 0.2], start);
  const table: MetricTable = {
    names: ["loss", "lr"],
    curves: new Map([["loss", metric("loss", "", [1, 3, 2, 4], start)], ["lr", lr]]),
    byType: new Map([["loss", loss]]),
  };
  return { trial: name, color, start, table };
}

const trials = [trial("one", "blue", 1000), trial("two", "red", 5000)];
const types = ["short", "long"];
const plain = { smoothing: 0, x: "step", hidden: [] } as const;

test("trials differ by hue, types by dashes and shade; nothing has the same look", () => {
  const { curves } = plotOf("loss", trials, types, plain);
  expect(curves.map((curve) => curve.label)).toEqual(["one · short", "one · long", "two · short", "two · long"]);
  expect(curves.map((curve) => curve.dashed)).toEqual([false, true, false, true]);
  expect(curves[0].color).toBe("blue");
  expect(curves[1].color).toContain("blue");
  expect(curves[2].color).toBe("red");
  expect(new Set(curves.map((curve) => `${curve.color} ${curve.dashed}`)).size).toBe(4);
});

test("over time all trials begin together", () => {
  const { curves } = plotOf("lr", trials, types, { ...plain, x: "time" });
  expect(curves.map((curve) => Array.from(curve.x))).toEqual([[0, 1], [0, 1]]);
});

test("what was smoothed stays in sight, faintly and below", () => {
  const { curves } = plotOf("lr", trials, types, { ...plain, smoothing: 0.5 });
  expect(curves.map((curve) => curve.faint ?? false)).toEqual([true, true, false, false]);
  expect(Array.from(curves[0].y)).toEqual([0.1, 0.2]);
  expect(lastValues({ name: "lr", curves, concealed: false }).map(({ value }) => value)).toEqual([curves[2].y[1], curves[3].y[1]]);
});

test("chosen metrics lie over each other, each with a look of its own", () => {
  const both = overlay(["loss", "lr"], trials, types, plain);
  expect(both.curves).toHaveLength(6);
  expect(new Set(both.curves.map((curve) => curve.label)).size).toBe(6);
  expect(new Set(both.curves.map((curve) => `${curve.color} ${curve.dashed}`)).size).toBe(6);
  const alone = overlay(["loss", "lr"], trials.slice(0, 1), types, plain);
  expect(alone.curves.map((curve) => curve.label)).toEqual(["loss · short", "loss · long", "lr"]);
  expect(alone.curves[2].color).toBe("var(--trial-2)");
});

test("a metric that a trial does not have leaves no curve", () => {
  expect(plotOf("accuracy", trials, types, plain).curves).toEqual([]);
});

test("names with a slash belong together, and what is in no group comes first", () => {
  const { groups, problem } = grouped(["train/loss", "loss", "train/a/b", "val/loss"], "");
  expect(groups).toEqual([
    { title: "", names: ["loss"] }, { title: "train", names: ["train/loss", "train/a/b"] },
    { title: "val", names: ["val/loss"] },
  ]);
  expect(problem).toBe("");
});

test("the first group of an expression names the group; what it does not match stays with its prefix", () => {
  const names = ["train/loss", "val/loss", "train/acc", "val/acc", "lr"];
  expect(grouped(names, "/(.*)").groups.map(({ title }) => title)).toEqual(["", "loss", "acc"]);
  expect(grouped(names, "/(.*)").problem).toMatch(/^1 of 5 metrics does not match/);
  expect(grouped(names, "(loss|acc|lr)").problem).toBe("");
  expect(grouped(names, "(?:train|val)/(l)").groups.find(({ title }) => title === "l")?.names)
    .toEqual(["train/loss", "val/loss"]);
  expect(grouped(names, "(x)").problem).toMatch(/^No metric matches/);
});

test("an expression that cannot group says why, and the prefixes stay", () => {
  for (const [expression, words] of [["(", /no regular expression: Unterminated group/], ["loss", /has no group/]]) {
    const { groups, problem } = grouped(["a/x", "b/x"], expression as string);
    expect(problem).toMatch(words);
    expect(groups.map(({ title }) => title)).toEqual(["a", "b"]);
  }
});

test("headings are there where they part something, or somebody asked", () => {
  const needed = (names: string[], expression = ""): boolean =>
    needHeadings(grouped(names, expression), expression, names.length);
  expect(needed(["loss", "loss/a", "loss/b"])).toBe(false);
  expect(needed(["train/loss", "val/loss"])).toBe(true);
  expect(needed(["loss", "lr"], "(l)")).toBe(true);
  expect(needed(Array.from({ length: 9 }, (_, i) => `loss/${i}`))).toBe(true);
});

test("a hidden trial is not drawn, and nothing else changes its look", () => {
  const hidden = { ...plain, hidden: ["one"] };
  const looks = (curves: readonly { label: string; color: string; dashed?: boolean }[]) =>
    curves.filter(({ label }) => label.startsWith("two")).map(({ label, color, dashed }) => [label, color, dashed]);
  const both = plotOf("loss", trials, types, plain);
  const rest = plotOf("loss", trials, types, hidden);
  expect(rest.curves.map(({ owner }) => owner)).toEqual(["two", "two"]);
  expect(looks(rest.curves)).toEqual(looks(both.curves));
  expect([both.concealed, rest.concealed]).toEqual([false, true]);
  const large = (look: typeof plain | typeof hidden) => overlay(["loss", "lr"], trials, types, look);
  expect(looks(large(hidden).curves)).toEqual(looks(large(plain).curves));
  expect(plotOf("accuracy", trials, types, hidden).concealed).toBe(false);
});

test("the header says the values where the cursor is, and none where a curve has ended", () => {
  const curves = [
    { label: "long", color: "red", x: [0, 10, 20], y: [1, 2, 3] },
    { label: "short", color: "blue", x: [0, 12], y: [5, 6] },
    { label: "raw", color: "red", x: [0, 10, 20], y: [7, 8, 9], faint: true },
  ];
  const plot = { name: "loss", curves, concealed: false };
  const said = (place: number) => valuesAt(plot, place).values.map(({ label, value }) => [label, value]);
  expect(said(11)).toEqual([["long", 2], ["short", 6]]);
  expect(valuesAt(plot, 11).exact).toBe(false);
  expect(valuesAt(plot, 1)).toMatchObject({ place: 0, exact: true });
  expect(said(19)).toEqual([["long", 3]]);
  expect(said(30)).toEqual([]);
});

test("a click goes to the nearest recorded step", () => {
  const steps = { number: [0, 100, 400], time: [50, 60, 90] } as unknown as StepColumns;
  expect(nearestStep(steps, 249, "step", 0)).toBe(100);
  expect(nearestStep(steps, 251, "step", 0)).toBe(400);
  expect(nearestStep(steps, 11, "time", 50)).toBe(100);
  expect(nearestStep({ number: [], time: [] } as unknown as StepColumns, 1, "step", 0)).toBeNull();
});

test("a mean over ranks lies in their range, smoothed or not", () => {
  const range = { low: Float64Array.from([0.5, 1]), high: Float64Array.from([1.5, 4]) };
  const table: MetricTable = {
    names: ["loss"], curves: new Map([["loss", { ...metric("loss", "", [1, 2]), range }]]), byType: new Map(),
  };
  const ranks = [{ trial: "one", color: "blue", start: 0, table }];
  const plot = plotOf("loss", ranks, types, plain);
  expect(plot.curves.map((curve) => curve.band)).toEqual([range]);
  expect(lastValues(plot)[0].range).toEqual([1, 4]);
  expect(valuesAt(plot, 0).values[0].range).toEqual([0.5, 1.5]);
  const smooth = plotOf("loss", ranks, types, { ...plain, smoothing: 0.5 });
  expect(smooth.curves.map((curve) => [curve.faint ?? false, curve.band])).toEqual([[true, undefined], [false, range]]);
});
