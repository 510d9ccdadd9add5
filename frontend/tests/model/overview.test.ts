import { expect, test } from "vitest";
import {
  columnsOf, compareCells, differences, isBetterLow, ownSettings, settingsOf, usualColumns, type Cell,
} from "../../src/model/overview/columns";
import { isExpression, parseFilter, textFits } from "../../src/model/overview/expression";
import type { OverviewTrial } from "../../src/model/overview/trial";

const WORDS = ["lr", "findings", "act", "loss", "size", "val acc", "steps"];
const ROWS: Record<string, Cell>[] = [
  { lr: 0.01, findings: 0, act: "ReLU", loss: 0.5, size: 2e6, "val acc": 0.9, steps: 400 },
  { lr: 1e-4, findings: 3, act: "GELU", loss: NaN, size: 3e9, "val acc": 0.1, steps: null },
];
function fitting(typed: string): number[] {
  const found = parseFilter(typed, WORDS);
  if ("problem" in found) throw new Error(found.problem);
  return ROWS.flatMap((row, i) => (found.fits((word) => row[word] ?? null) ? [i] : []));
}

test.each([
  ["lr > 1e-3 and findings = 0", [0]],
  ["lr>1e-3", [0]],
  ["lr <= 0.01", [0, 1]],
  ["findings != 0 or act = relu", [0, 1]],
  ["not (act = GELU)", [0]],
  ["act ~ el", [0, 1]],
  ['"val acc" >= 90%', [0]],
  ["loss = nan", [1]],
  ["loss != nan", [0]],
  ["size < 10MB", [0]],
  ["steps > 3", [0]],
  ["steps < 1e9", [0]],
  ["lr > 1 or findings = 3 and act = GELU", [1]],
])("%s", (typed, rows) => {
  expect(fitting(typed)).toEqual(rows);
});

test.each([
  ["learning > 3", "There is no column learning"],
  ["lr >", "Something is missing at the end"],
  ["lr 3", "After lr one of"],
  ["(lr > 3", "A bracket has no end"],
  ["lr > 3 act = x", "Before act an “and” or an “or” is missing"],
  ['act = "x', "has no end"],
])("what cannot be understood is said: %s", (typed, words) => {
  const found = parseFilter(typed, WORDS);
  expect("problem" in found && found.problem).toContain(words);
});

test("plain text is looked for, and is no expression", () => {
  expect([isExpression("mlp relu"), isExpression("lr > 3")]).toEqual([false, true]);
  expect([textFits("DEAD re", "dead-block act=ReLU"), textFits("dead gelu", "dead-block ReLU")]).toEqual([true, false]);
});

const trial = (name: string, config: Record<string, unknown>): OverviewTrial => ({
  name, known: "read", created: 1, steps: 4, trainedTo: 9, cost: 0.1, bytes: 5, config,
  metrics: [{ name: "loss", last: 1, lowest: 0.5, highest: 2 }, { name: "val_acc", last: 0.5, lowest: 0, highest: 0.7 }],
});
const TRIALS = [
  trial("a", { lr: 1, data: { seed: 0 }, tags: ["x"] }), trial("b", { lr: 1, data: { seed: 0 } }),
  trial("c", { lr: 2, data: { seed: 0 }, extra: [1] }),
];

test("what differs is what is not as in most trials", () => {
  expect(settingsOf({ a: { b: 1, c: {} }, d: [1], e: null })).toEqual([["a.b", 1], ["a.c", "{}"], ["d", "[1]"], ["e", "null"]]);
  const found = differences(TRIALS);
  expect(found).toEqual([{ name: "lr", usual: 1 }, { name: "extra", usual: null }]);
  expect(ownSettings(TRIALS[0], found)).toEqual([]);
  expect(ownSettings(TRIALS[2], found)).toEqual([["lr", 2], ["extra", "[1]"]]);
});

test("columns know their values; the best of a loss is its least", () => {
  const columns = columnsOf(TRIALS, () => ({ errors: 1, warnings: 2, isChecked: true }));
  const value = (id: string): Cell => columns.find((column) => column.id === id)?.value(TRIALS[0]) as Cell;
  expect(["findings", "config:data.seed", "metric:loss", "best:loss", "best:val_acc", "steps", "tags"].map(value)).toEqual(
    [3, 0, 1, 0.5, 0.7, 10, "x"]);
  expect([isBetterLow("train/loss"), isBetterLow("accuracy")]).toEqual([true, false]);
  expect(usualColumns(TRIALS, "loss")).toContain("differs");
  expect(usualColumns([TRIALS[0]], "loss")).toContain("config:lr");
  expect(usualColumns(Array.from({ length: 30 }, () => TRIALS).flat(), "loss")).toContain("config:lr");
});

test("numbers are sorted as numbers, names with numbers as people do", () => {
  expect([10, 9, 1e-4].sort(compareCells)).toEqual([1e-4, 9, 10]);
  expect(["run-10", "run-9"].sort(compareCells)).toEqual(["run-9", "run-10"]);
});

test("a setting and a metric of one name: the plain word is the one that is a number", () => {
  const both = [trial("a", { loss: "huber", val_acc: 3 }), trial("b", { loss: "mse", val_acc: 4 })];
  const columns = columnsOf(both, () => ({ errors: 0, warnings: 0, isChecked: true }));
  const words = new Map(columns.map(({ id, word }) => [id, word]));
  expect(["config:loss", "metric:loss", "config:val_acc", "metric:val_acc"].map((id) => words.get(id))).toEqual(
    ["config.loss", "loss", "val_acc", "metric.val_acc"]);
});
