import { expect, test } from "vitest";
import { filterNotes, pieces } from "../../src/panels/notes/filter";

const note = (step: number, text: string, time = step) => ({ step, text, time });
const trials = [
  { trial: "one", color: "blue", notes: [note(0, "Begin"), note(200, "rate halved to 0.05"), note(120, "a spike", 5)] },
  { trial: "two", color: "red", notes: [note(120, "Spike again", 4), note(-1, "before all")] },
];
const found = (query: string): string[] => filterNotes(trials, query).map((row) => row.text);

test("all notes, by step, then by time", () => {
  expect(found("")).toEqual(["before all", "Begin", "Spike again", "a spike", "rate halved to 0.05"]);
  expect(filterNotes(trials, "again")[0]).toMatchObject({ trial: "two", color: "red" });
});

test("all words must occur, in any case", () => {
  expect(found("SPIKE")).toEqual(["Spike again", "a spike"]);
  expect(found("spike again")).toEqual(["Spike again"]);
  expect(found("(")).toEqual([]);
});

test("numbers are steps as well", () => {
  expect(found("120")).toEqual(["Spike again", "a spike"]);
  expect(found(">120")).toEqual(["Spike again", "a spike", "rate halved to 0.05"]);
  expect(found("<0")).toEqual(["before all", "Begin"]);
  expect(found("100-150 again")).toEqual(["Spike again"]);
});

test("what was found is marked, whatever letters it has", () => {
  expect(pieces("a+b (a+b)", "a+b")).toEqual(["", "a+b", " (", "a+b", ")"]);
  expect(pieces("Loss fell", "LOSS")).toEqual(["", "Loss", " fell"]);
  expect(pieces("as it is", " ")).toEqual(["as it is"]);
});
