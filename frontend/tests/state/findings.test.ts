/** A click on a finding sets everything so that it can be seen, and the address says so. */
import { expect, test } from "vitest";
import type { Finding } from "../../src/api/types";
import { changeLook, mergePage } from "../../src/state/changes";
import { decode, encode, partsOf } from "../../src/state/codec";
import { withFinding } from "../../src/state/findings";
import { FIRST_STATE, NOTHING_SHOWN } from "../../src/state/look";

const finding = (link: string): Finding => ({ id: "dead_units@fc.1", link }) as Finding;
const LINK = "#v=1&tab=graph&trial=suspect&type=!-odd&step=49&of=gradient:total&node=fc.1&pass=2&series.statistic=zeros";

test("only what a link names is read from it", () => {
  const { look, page } = partsOf(LINK.slice(1));
  expect(look).toEqual({ trial: "suspect", type: "-odd", step: 49, of: "gradient:total", node: "fc.1", pass: 2 });
  expect(page).toEqual({ tab: "graph", series: { statistic: "zeros" } });
  expect(partsOf("tab=graph&node=x")).toEqual({ look: {}, page: {} }); // no version, or that of another time
});

test("what the link names is shown, older choices that could hide it are taken back, the rest stays", () => {
  const shown = { ...NOTHING_SHOWN, trial: "fixed" };
  let state = changeLook(FIRST_STATE, { trial: "fixed", sample: 3, role: "left", step: 7 }, "a", shown);
  state = mergePage(state, { trials: ["fixed", "other"], tab: "notes", follow: true, edges: "all" });
  const { page, recent } = withFinding(state, finding(LINK), "suspect", shown, { open: ["fc"] });
  expect(page.look).toMatchObject({ trial: "suspect", step: 49, node: "fc.1", pass: 2, sample: null, role: null });
  expect(page).toMatchObject({ tab: "graph", finding: "dead_units@fc.1", follow: false, edges: "all", open: ["fc"] });
  expect(page.series).toEqual({ ...FIRST_STATE.page.series, statistic: "zeros" });
  expect(page.trials).toEqual(["suspect", "other"]);
  expect(recent).not.toContain("sample");
});

test("the address reproduces it", () => {
  const state = withFinding(FIRST_STATE, finding(LINK), "suspect", NOTHING_SHOWN);
  expect(encode(state)).toContain("finding=dead_units%40fc.1");
  expect(decode(encode(state))).toEqual(state);
});
