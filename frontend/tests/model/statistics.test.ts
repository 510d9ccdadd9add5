import { expect, test } from "vitest";
import { STATISTICS, type Statistic } from "../../src/api/types";
import { eitherOf, heatChoices, heatLabel, SAMPLE_STATISTICS, statisticName, statisticNamed } from "../../src/model/statistics";

const own: Statistic = {
  name: "tailedness", label: "how heavy", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false,
};
const named = (name: string): Statistic => statisticNamed(name);

test("everything that is recorded of a tensor can be shown, but the number of its elements", () => {
  const names = STATISTICS.map(({ name }) => name);
  expect(heatChoices(STATISTICS).map(({ value }) => value).sort()).toEqual(names.filter((name) => name !== "count").sort());
});

test("counts are shown as shares, and quantiles come last", () => {
  expect(heatLabel(named("zeros"))).toBe("share of zeros");
  const choices = heatChoices([named("q05"), named("nans"), named("count"), own, named("mean")]);
  expect(choices.map(({ label }) => label)).toEqual(["how heavy", "mean", "share of NaN", "5th percentile"]);
});

test("what a trial brings along is called as it says; what nobody knows, by its name", () => {
  expect(statisticName("tailedness", [...STATISTICS, own])).toBe("how heavy");
  expect(statisticNamed("some_new_one")).toMatchObject({ label: "some new one", scale: "log", isCount: false });
  expect(eitherOf([named("mean"), own], [named("mean"), named("std")]).map(({ name }) => name)).toEqual([
    "mean", "tailedness", "std",
  ]);
});

test("statistics of samples: counts last", () => {
  expect(SAMPLE_STATISTICS[0]).toBe("mean");
  expect(SAMPLE_STATISTICS.slice(-3)).toEqual(["zeros", "nans", "infs"]);
});

test("numbers of both signs have a scale with two ends", () => {
  const signed = STATISTICS.filter(({ scale }) => scale === "diverging").map(({ name }) => name);
  expect(signed).toEqual(["mean", "min", "max", "q01", "q05", "q25", "q50", "q75", "q95", "q99"]);
});
