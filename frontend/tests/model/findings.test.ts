import { expect, test } from "vitest";
import type { Finding, Findings } from "../../src/api/types";
import {
  countOf, countWords, entriesOf, marksOf, nothingWords, numbersIn, sourceName, spansOf, strengthWords,
  timeWords,
} from "../../src/model/findings";

const finding = (id: string, more: Partial<Finding> = {}): Finding => ({
  id, check: id.split("@")[0], severity: "warning", title: `title of ${id}`, detail: "", node: id.split("@")[1] ?? "",
  role: "", of: "value", firstStep: 0, lastStep: 10, types: [], samples: [], value: 1, threshold: 0.5, strength: 2,
  usual: null, steps: 11, source: "", causes: [], remedies: [], link: "", follows: "", also: [], ...more,
});

const shape = (findings: readonly Finding[]) =>
  entriesOf(findings).map(({ finding: { id }, followers }) => [id, ...followers.map((each) => each.id)]);

test("how sure it is: beside healthy trainings if they are known, else beside the threshold", () => {
  expect(strengthWords(finding("a", { strength: 12, usual: [0.5, 3] })))
    .toBe("0.5 to 3 in healthy trainings of this kind; 12 times beyond");
  expect(strengthWords(finding("a", { strength: 1, usual: [0.5, 3] }))).toBe("0.5 to 3 in healthy trainings of this kind");
  expect(strengthWords(finding("a", { strength: 4 }))).toBe("4 times beyond the threshold");
  expect(strengthWords(finding("a", { strength: 1 }))).toBe("");
  expect(strengthWords(finding("a", { strength: null }))).toBe("");
});

test("what follows from something is part of its entry, also by several steps", () => {
  const all = [
    finding("a"), finding("b"), finding("c", { follows: "a" }), finding("d", { follows: "c" }),
    finding("e", { follows: "silenced" }),
  ];
  expect(shape(all)).toEqual([["a", "c", "d"], ["b"], ["e"]]);
});

test("a cause may be listed behind what follows from it", () => {
  expect(shape([finding("late", { follows: "cause" }), finding("cause")])).toEqual([["cause", "late"]]);
});

test("what explains each other is listed once, and nothing is lost", () => {
  const circle = [finding("a", { follows: "b" }), finding("b", { follows: "a" }), finding("c", { follows: "b" })];
  expect(shape(circle)).toEqual([["a", "b", "c"]]);
  expect(shape([finding("x", { follows: "x" })])).toEqual([["x"]]);
});

test("entries are counted, not findings, and what is harmless does not count", () => {
  const all = [
    finding("a", { severity: "error" }), finding("b", { follows: "a" }), finding("c"), finding("d", { severity: "info" }),
  ];
  const count = countOf(entriesOf(all));
  expect(count).toEqual({ errors: 1, warnings: 1 });
  expect(countWords(count)).toBe("1 error, 1 warning");
  expect(countWords({ errors: 0, warnings: 2 })).toBe("2 warnings");
});

test("a node has the worst of its marks and the words of all", () => {
  const marks = marksOf([
    finding("a@x", { also: ["y", "x"] }), finding("b@x", { severity: "error" }), finding("loss", { severity: "error" }),
  ]);
  expect([...marks.keys()]).toEqual(["x", "y"]);
  expect(marks.get("x")).toEqual({ severity: "error", begins: true, words: ["title of a@x", "title of b@x"] });
  expect(marks.get("y")).toEqual({ severity: "warning", begins: false, words: ["also: title of a@x"] });
});

test("spans of time: harmless ones only if chosen, the worst on top", () => {
  const all = [
    finding("a", { severity: "error", firstStep: 3, lastStep: 5 }), finding("b", { follows: "a", firstStep: 7 }),
    finding("c"), finding("d", { severity: "info" }),
  ];
  const brief = (chosen: string | null) =>
    spansOf(entriesOf(all), chosen).map(({ from, to, isChosen }) => [from, to, isChosen]);
  expect(brief(null)).toEqual([[0, 10, false], [3, 5, false]]);
  expect(brief("d")).toEqual([[0, 10, false], [3, 5, false], [0, 10, true]]);
  expect(brief("b")).toEqual([[0, 10, false], [7, 10, true]]); // the follower stands for its entry
});

test("when and where, in words", () => {
  const seen = finding("a@n", { firstStep: 2000, lastStep: 12400, role: "left", of: "gradient:total", types: ["long"] });
  expect(timeWords(seen, 12400)).toBe("since step 2000 of type long");
  expect(timeWords({ ...seen, types: [] }, 20000)).toBe("steps 2000 to 12\u202f400");
  expect(timeWords({ ...seen, lastStep: 2000, types: ["a", "b"] }, 2000)).toBe("at step 2000");
  expect(sourceName("/srv/models/model.py:41")).toBe("model.py:41");
  expect(sourceName("C:\\me\\model.py:41")).toBe("model.py:41");
});

test("numbers in a sentence are told from words", () => {
  expect(numbersIn("grew from 0.12 to 1e-05; below -0.5.").filter((_, i) => i % 2)).toEqual(["0.12", "1e-05", "-0.5"]);
  expect(numbersIn("linear_2 of layer1.conv, q01: 87 % of 1,000")).toEqual([
    "linear_2 of layer1.conv, q01: ", "87 %", " of ", "1,000", "",
  ]);
});

test("an empty list says why", () => {
  const empty: Findings = {
    checked: true, checking: false, problem: null, checks: 42, steps: 18, lastStep: 85, findings: [], silenced: [],
  };
  expect(nothingWords(empty)).toBe("42 checks, nothing found in 18 recorded steps up to step 85.");
  expect(nothingWords({ ...empty, silenced: [{ check: "a", node: null, findings: [finding("a")] }] })).toContain(
    "nothing found beside what is silenced in 18",
  );
  expect(nothingWords({ ...empty, silenced: [{ check: "a", node: null, findings: [] }] })).not.toContain("silenced");
  expect(nothingWords({ ...empty, steps: 0, lastStep: null })).toContain("nothing to check");
  expect(nothingWords({ ...empty, problem: "It cannot be read." })).toBe("It cannot be read.");
});
