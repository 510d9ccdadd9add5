import { expect, test } from "vitest";
import type { Gap, StepColumns, Trial } from "../../src/api/types";
import {
  bytesText, costOf, factRows, flatten, ownSettings, readReport, reasonCounts, thinnedSteps,
} from "../../src/panels/run/facts";
import { groupGaps } from "../../src/panels/run/gaps";

const gap = (step: number, reason: string, node = "", of = ""): Gap => ({ step, node, of, reason, time: step });

test("gaps that differ in numbers only are one reason, the most frequent first", () => {
  const groups = groupGaps([
    gap(3, "complex64 cannot be measured", "fft", "value"),
    gap(17, "step 17 was left out: the queue was full"),
    gap(12, "step 12 was left out: the queue was full"),
    gap(-1, "the end of a file is missing"),
  ]);
  expect(groups[0]).toEqual({
    reason: "step … was left out: the queue was full",
    count: 2, firstStep: 12, lastStep: 17, nodes: [], ofs: [],
    example: "step 17 was left out: the queue was full",
  });
  expect(groups.find((group) => group.nodes.length)).toMatchObject({
    reason: "complex64 cannot be measured", nodes: ["fft"], ofs: ["value"], // no number of it was lost
  });
  expect(groups.find((group) => group.reason.startsWith("the end"))).toMatchObject({ firstStep: -1, lastStep: -1 });
  expect(groupGaps([])).toEqual([]);
});

test("settings are flat, and what differs comes first", () => {
  expect(flatten({ lr: 0.1, data: { name: "digits", sizes: [1, 2], none: {} }, off: null })).toEqual([
    ["lr", "0.1"], ["data.name", "digits"], ["data.sizes", "[1,2]"], ["data.none", "{}"], ["off", "null"],
  ]);
  const rows = factRows([[["a", "1"], ["b", "1"]], [["a", "1"], ["b", "2"], ["c", "3"]]]);
  expect(rows).toEqual([
    { name: "b", values: ["1", "2"], differs: true },
    { name: "c", values: [null, "3"], differs: true },
    { name: "a", values: ["1", "1"], differs: false },
  ]);
});

const trialWith = (config: Record<string, unknown>): Trial => ({ config }) as unknown as Trial;

test("the recorder's report is no setting of the user's, and may be anything", () => {
  const report = {
    steps: { short: { seen: 10, recorded: 2 } }, recording_seconds: 1.5, raw_bytes: 100,
    budget: { fraction: 0.05, share: 0.04, refused: { "every(1)": 3, "spike": 4 } },
  };
  const trial = trialWith({ lr: 1, endoscope: report });
  expect(ownSettings(trial)).toEqual([["lr", "1"]]);
  expect(readReport(trial)).toEqual({
    steps: { short: { seen: 10, recorded: 2 } }, recordingSeconds: 1.5, writerSeconds: null, rawBytes: 100,
    budget: { fraction: 0.05, share: 0.04, refused: 7 }, failedWrites: 0, lastFailure: "",
  });
  expect(readReport(trialWith({}))).toBeNull();
  expect(readReport(trialWith({ endoscope: "text" }))).toBeNull();
  expect(readReport(trialWith({ endoscope: { steps: 3, budget: [] } }))).toMatchObject({ steps: {}, budget: null });
});

const columns = (more: Partial<StepColumns>): StepColumns => ({
  ordinal: [], number: [], type: [], graph: [], time: [], seconds: [], why: [], raw: [], tensors: [], ...more,
});

test("the cost of recording", () => {
  const cost = costOf(columns({ seconds: [0.1, 0.5, 0.2], time: [100, 104, 110] }));
  expect(cost).toMatchObject({ median: 0.2, worst: 0.5 });
  expect(cost?.seconds).toBeCloseTo(0.8, 12);
  expect(costOf(columns({}))).toBeNull();
});

test("thinned steps have left their ordinals behind", () => {
  expect(thinnedSteps(columns({ ordinal: [0, 2, 4, 5] }))).toBe(2);
  expect(thinnedSteps(columns({ ordinal: [0, 1] }))).toBe(0);
  expect(thinnedSteps(columns({}))).toBe(0);
});

test("reasons, the most frequent first", () => {
  const counts = reasonCounts(columns({ why: [0, 1, 1, 7] }), ["every(40)", "spike"]);
  expect(counts).toEqual([["spike", 2], ["every(40)", 1]]);
});

test("sizes are short", () => {
  expect([0, 999, 2_202_480, 5e12].map(bytesText)).toEqual(["0 B", "999 B", "2.2 MB", "5 TB"]);
});
