import { expect, test } from "vitest";
import { gapsOf, nameOf, splitName, summaryOf } from "../../src/model/ranks";

const TRIALS = [
  { name: "job", ranks: [0, 1, 3] },
  { name: "alone", ranks: [] },
  { name: "odd:rank-1", ranks: [] },
];

test("a name is that of a trial, or of one rank of it", () => {
  expect(splitName("job", TRIALS)).toEqual({ trial: "job", rank: null });
  expect(splitName("job:rank-3", TRIALS)).toEqual({ trial: "job", rank: 3 });
  expect(splitName("odd:rank-1", TRIALS)).toEqual({ trial: "odd:rank-1", rank: null });
  expect(nameOf("job", 3)).toBe("job:rank-3");
  expect(nameOf("job", null)).toBe("job");
});

test("only ranks that have recorded something are there", () => {
  expect(summaryOf("job:rank-3", TRIALS)?.name).toBe("job");
  expect(summaryOf("job:rank-2", TRIALS)).toBeUndefined();
  expect(summaryOf("alone:rank-0", TRIALS)).toBeUndefined();
  expect(summaryOf("alone", TRIALS)?.name).toBe("alone");
});

test("tensors without a whole are counted by their reasons", () => {
  const why = ["", "local", "missing", "local"];
  expect(gapsOf({ rows: 4, gap: (row) => why[row] as string })).toEqual({
    tensors: 3, reasons: ["2 × local", "1 × missing"],
  });
  expect(gapsOf(null)).toEqual({ tensors: 0, reasons: [] });
});
