import { expect, test } from "vitest";
import page from "../../../docs/glossary.md?raw";
import { MEANINGS, meaning } from "../../src/model/glossary";

const rows = [...page.matchAll(/^\| ([\w ]+) \| (.*) \|$/gm)].map((row) => [row[1]!, row[2]!.replaceAll("`", "")]);
const words = rows.filter(([word]) => word !== "word") as [string, string][];

test("the page says what the glossary says", () => {
  for (const [word, sentence] of words) expect(meaning(word)).toBe(sentence);
  expect(Object.keys(MEANINGS)).toEqual(words.map(([word]) => word));
});

test("the glossary has at most 25 words, in the singular or the plural", () => {
  expect(words.length).toBeLessThanOrEqual(25);
  expect(words.length).toBeGreaterThan(15);
  expect(meaning("trials")).toBe(meaning("trial"));
  expect(meaning("pass")).toContain("second time");
  expect(meaning("Theme")).toBeUndefined();
});
