import { expect, test } from "vitest";
import type { MetricCurve, MetricTable } from "../../src/api/tables";
import type { StepColumns } from "../../src/api/types";
import { nearestStep } from "../../src/panels/metrics/nearest_step";
import { groupOf, lastValues, overlay, plotOf, type TrialMetrics } from "../../src/panels/metrics/plots";
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
const plain = { smoothing: 0, x: "step" } as const;

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
  const { curves } = plotOf("lr", trials, types, { smoothing: 0, x: "time" });
  expect(curves.map((curve) => Array.from(curve.x))).toEqual([[0, 1], [0, 1]]);
});

test("what was smoothed stays in sight, faintly and below", () => {
  const { curves } = plotOf("lr", trials, types, { smoothing: 0.5, x: "step" });
  expect(curves.map((curve) => curve.faint ?? false)).toEqual([true, true, false, false]);
  expect(Array.from(curves[0].y)).toEqual([0.1, 0.2]);
  expect(lastValues({ name: "lr", curves }).map(({ value }) => value)).toEqual([curves[2].y[1], curves[3].y[1]]);
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

test("names with a slash belong together", () => {
  expect(["loss", "train/loss", "train/a/b"].map(groupOf)).toEqual(["", "train", "train"]);
});

test("a click goes to the nearest recorded step", () => {
  const steps = { number: [0, 100, 400], time: [50, 60, 90] } as unknown as StepColumns;
  expect(nearestStep(steps, 249, "step", 0)).toBe(100);
  expect(nearestStep(steps, 251, "step", 0)).toBe(400);
  expect(nearestStep(steps, 11, "time", 50)).toBe(100);
  expect(nearestStep({ number: [], time: [] } as unknown as StepColumns, 1, "step", 0)).toBeNull();
});
