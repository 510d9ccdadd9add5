/** The address holds the whole page, and whatever stands in it, there is a page. */
import { expect, test } from "vitest";
import { decode, encode } from "../../src/state/codec";
import { FIRST_PAGE, FIRST_STATE, type State } from "../../src/state/look";

const EVERYTHING: State = {
  page: {
    tab: "metrics",
    trials: ["leaky, run", "fixed!", "-", "ünï 1"],
    look: {
      trial: "fixed!", type: "long & short", step: 12400, stepType: "-eval", of: "gradient:total", sample: 0,
      aggregate: "abs_max",
      node: "decoder.hidden #2", role: "", pass: 7,
    },
    other: { step: 0, trial: "leaky, run", role: null, sample: null },
    heat: { statistic: "", mode: "past", range: [0.001, 30] },
    overview: {
      filter: "lr > 1e-3 and findings = 0", sort: "-metric:loss", columns: ["lr", "data.seed, 1"], chart: "scatter",
      x: "lr", y: "metric:loss", all: true,
    },
    layers: {
      rows: "parameters", columns: "equal", order: "differs", filter: "mlp", open: ["blocks.0", "a,b"],
      other: "leaky, run",
    },
    edges: "selected",
    open: [],
    camera: [-12.5, 300, 0.75],
    heights: "log",
    trace: { rolled: true, pattern: "type:relu & in:a", from: "relu_1", to: "add_2:3", of: "gradient", output: 1, branch: 2 },
    series: { statistic: "abs_mean", log: true, histogram: false, ridges: true },
    metrics: {
      names: ["loss/a,b", "lr"], smoothing: 0.85, log: true, x: "time", range: [-3, 120.5], filter: "val lo",
      group: "^([^/,]+)-(?:a|b)&", hidden: ["leaky, run", "-"], outliers: false,
    },
    values: { axes: [2, 0], index: [0, 3, 0], sort: "std", show: "numbers" },
    side: "outline",
    finding: "dead_units@a,b !&@gradient:total",
    notes: "nan=1&x",
    view: "attention",
    follow: false,
  },
  recent: ["node", "step", "of", "trial"],
  recentOther: ["step", "trial"],
};

test("everything comes back", () => {
  expect(decode(encode(EVERYTHING))).toEqual(EVERYTHING);
});

test("every part of the page is in the address", () => {
  for (const part of Object.keys(EVERYTHING.page) as (keyof State["page"])[]) {
    const changed: State = { ...FIRST_STATE, page: { ...FIRST_PAGE, [part]: EVERYTHING.page[part] } };
    expect(decode(encode(changed)).page[part], part).toEqual(EVERYTHING.page[part]);
    expect(encode(changed), part).not.toBe("");
  }
});

test.each(["", "-", "!", "-x", "!-", "long"])("a role or type called %o comes back", (name) => {
  const page = { ...FIRST_PAGE, look: { ...FIRST_PAGE.look, role: name, type: name } };
  expect(decode(encode({ ...FIRST_STATE, page })).page.look).toMatchObject({ role: name, type: name });
});

test("what is as in the beginning is left out", () => {
  expect(encode(FIRST_STATE)).toBe("");
  const page = { ...FIRST_PAGE, follow: false, look: { ...FIRST_PAGE.look, step: 400, of: "gradient:total" } };
  expect(encode({ ...FIRST_STATE, page, recent: ["of"] })).toBe("v=1&step=400&of=gradient:total&order=o");
});

test.each(["", "nonsense", "v=2&tab=metrics", "v=1", "%%%", "v=1&tab=nowhere&step=x&heat.mode=&order=zz&edges=some"])(
  "%o is the page as in the beginning",
  (text) => expect(decode(text)).toEqual(FIRST_STATE),
);

test("what makes no sense leaves the rest alone", () => {
  const { page } = decode("v=1&tab=nowhere&step=12&values.axes=1,x,0&metrics.smoothing=NaN");
  expect(page).toEqual({
    ...FIRST_PAGE, follow: false, look: { ...FIRST_PAGE.look, step: 12 }, values: { ...FIRST_PAGE.values, axes: [1, 0] },
  });
});
