/** Which trials are on the page if nobody has chosen any. */
import { expect, test } from "vitest";
import type { Catalog } from "../../src/api/types";
import type { State } from "../../src/state/look";
import { trialsOf } from "../../src/state/shown";

const state = { page: { trials: [], look: { trial: null } } } as unknown as State;
const catalog = (ranks: readonly number[]): Catalog =>
  ({ trials: [{ name: "job", ranks, readable: true, steps: 3, created: 1 }] }) as unknown as Catalog;

test("a job is shown as a whole, and as the only rank that has recorded anything", () => {
  expect(trialsOf(state, catalog([]))).toEqual(["job"]);
  expect(trialsOf(state, catalog([0, 1]))).toEqual(["job"]);
  expect(trialsOf(state, catalog([1]))).toEqual(["job:rank-1"]);
  const chosen = { page: { trials: ["job"], look: { trial: null } } } as unknown as State;
  expect(trialsOf(chosen, catalog([1])), "somebody has chosen all").toEqual(["job"]);
});
