import { expect, test } from "vitest";
import { transformer } from "../networks";
import { buildGraph } from "../../src/model/graph";
import { scoreOf, searchGraph } from "../../src/model/search";

const model = buildGraph(transformer(12));
const names = (query: string): string[] => searchGraph(model, query).map((found) => found.name);

test("the best match comes first", () => {
  expect(names("loss")[0]).toBe("loss");
  expect(names("h.3 attn")[0]).toBe("transformer.h.3.attn");
  expect(names("ln_f weight")[0]).toBe("transformer.ln_f.weight");
});

test("every word must occur, letters in order", () => {
  expect(names("attn nowhere")).toEqual([]);
  expect(names("xfmr")).toEqual([]);
  expect(names("lmhd")[0]).toBe("lm_head");
  expect(names("  ")).toEqual([]);
});

test("groups without an output of their own are found too", () => {
  expect(searchGraph(model, "transformer.h").some((found) => found.group > 0)).toBe(true);
});

test("a whole piece at the end beats a part of one", () => {
  expect(scoreOf("act", "mlp.act")).toBeGreaterThan(scoreOf("act", "factor.x"));
});
