/** Choices that cannot be had together: the newest is kept, older ones give way and come back. */
import { describe, expect, test } from "vitest";
import { changeLook } from "../../src/state/changes";
import { FIRST_STATE, NO_LOOK, NOTHING_SHOWN, type Field, type Look, type Shown, type State } from "../../src/state/look";
import { relax, type World } from "../../src/state/relax";

/** node, role, of, pass, kind, batch */
type Row = readonly [string, string, string, number, string, number];

const LONG_ROWS: readonly Row[] = [
  ["inputs", "", "value", 1, "input", 4],
  ["memory.gate", "", "value", 1, "computed", 4],
  ["memory.gate", "", "value", 2, "computed", 4],
  ["memory.gate", "", "value", 3, "computed", 4],
  ["memory.gate", "", "gradient:total", 1, "computed", 4],
  ["sums", "first", "value", 1, "computed", 8],
  ["sums", "second", "value", 1, "computed", 8],
  ["memory.weight", "", "value", 1, "parameter", 0],
  ["memory.weight", "", "update", 1, "parameter", 0],
  ["loss", "", "value", 1, "loss", 0],
  ["aux", "", "gradient:aux", 1, "computed", 4],
];
const SHORT = [0, 1, 4, 5, 7, 8, 9]; // no second pass, no second role, no gradient of aux

function worldOf(trial: string, steps: readonly (readonly [number, string])[], short = SHORT): World {
  const column = <T>(at: number): T[] => LONG_ROWS.map((row) => row[at] as T);
  const every = LONG_ROWS.map((_, i) => i);
  return {
    trial,
    numbers: steps.map(([number]) => number),
    types: steps.map(([, type]) => type),
    ordinals: steps.map((_, i) => i * 2),
    tensors: {
      node: column<string>(0), role: column<string>(1), of: column<string>(2), pass: column<number>(3),
      kind: column<string>(4), batch: column<number>(5),
    },
    has: (step) => (steps[step][1] === "long" ? every : short),
  };
}

const STEPS = [[0, "short"], [10, "long"], [20, "short"], [30, "long"], [40, "short"]] as const;
const WORLD = worldOf("a", STEPS);

/** Choices, one after the other, as a user makes them. */
function choose(...choices: readonly Partial<Look>[]): State {
  return choices.reduce<State>((state, look) => changeLook(state, look, "a", NOTHING_SHOWN), FIRST_STATE);
}
const show = (state: State, worlds: readonly World[] = [WORLD]): Shown =>
  relax(worlds, state.page.look, state.recent);

test("without choices the newest step and what everything leads to are shown", () => {
  expect(show(FIRST_STATE)).toMatchObject({
    trial: "a", step: 40, type: "short", ordinal: 8, of: "value", node: "loss", role: "", pass: 1, sample: null,
    relaxed: [],
  });
});

/** Each choice fits steps of type long only, or is about them; each is impossible together with its rival. */
const CONFLICTS: readonly (readonly [Partial<Look>, Partial<Look>])[] = [
  [{ type: "short" }, { pass: 3 }],
  [{ step: 20 }, { pass: 2 }],
  [{ step: 20 }, { type: "long" }],
  [{ step: 20 }, { role: "second" }],
  [{ step: 20 }, { of: "gradient:aux" }],
  [{ step: 20 }, { node: "aux" }],
  [{ node: "loss" }, { of: "gradient:total" }],
  [{ node: "loss" }, { role: "first" }],
  [{ node: "memory.weight" }, { sample: 2 }],
  [{ node: "memory.gate" }, { sample: 6 }],
  [{ of: "update" }, { sample: 0 }],
  [{ of: "update" }, { pass: 2 }],
  [{ role: "first" }, { pass: 2 }],
];

describe.each([...CONFLICTS, ...CONFLICTS.map(([a, b]) => [b, a] as const)])("%o, then %o", (older, newer) => {
  const [oldField] = Object.keys(older) as Field[];
  const [newField] = Object.keys(newer) as Field[];

  test("the newer one is kept, the older one gives way and says so", () => {
    const shown = show(choose(older, newer));
    expect(shown[newField]).toBe(newer[newField]);
    expect(shown[oldField]).not.toBe(older[oldField]);
    expect(shown.relaxed).toEqual([oldField]);
  });

  test("the older one comes back when the newer one is taken back", () => {
    const shown = show(choose(older, newer, { [newField]: null }));
    expect(shown[oldField]).toBe(older[oldField]);
    expect(shown.relaxed).toEqual([]);
  });
});

test("three choices: the two newest that fit together are kept, then all others that still fit", () => {
  const state = choose({ sample: 3 }, { of: "gradient:aux" }, { step: 20 });
  expect(show(state)).toMatchObject({ step: 20, of: "value", sample: 3, relaxed: ["of"] });
  expect(show(changeLook(state, { step: 30 }, "a", NOTHING_SHOWN))).toMatchObject({
    step: 30, of: "gradient:aux", node: "aux", sample: 3, relaxed: [],
  });
});

test("what gives way goes as near as it can", () => {
  expect(show(choose({ step: 24 }, { type: "long" })).step).toBe(30);
  expect(show(choose({ step: 15 }, { type: "long" })).step).toBe(10);
  expect(show(choose({ pass: 3 }, { type: "short" })).pass).toBe(1);
  expect(show(choose({ node: "memory.weight" }, { of: "gradient:total" })).node).toBe("memory.gate");
});

test("a step that exists twice is found by its type", () => {
  const twice = worldOf("a", [[0, "short"], [5, "long"], [5, "short"]]);
  expect(show(choose({ step: 5 }), [twice])).toMatchObject({ type: "short", ordinal: 4 });
  expect(show(choose({ step: 5 }, { type: "long" }), [twice])).toMatchObject({ type: "long", ordinal: 2, relaxed: [] });
});

test("a node that only another trial of the page has leads to that trial, and back", () => {
  const other = worldOf("b", [[0, "long"]]);
  const worlds = [worldOf("a", [[0, "short"]]), other];
  const state = choose({ trial: "a" }, { node: "aux" });
  expect(show(state, worlds)).toMatchObject({ trial: "b", node: "aux", relaxed: ["trial"] });
  expect(show(changeLook(state, { trial: "a" }, "a", NOTHING_SHOWN), worlds)).toMatchObject({
    trial: "a", relaxed: ["node"],
  });
});

test("while it is not known which tensors there are, choices pass through", () => {
  const early: World = { ...WORLD, tensors: null, has: () => null };
  expect(show(choose({ node: "aux" }, { pass: 2 }, { type: "long" }), [early])).toMatchObject({
    node: "aux", pass: 2, step: 30, of: "value", relaxed: [],
  });
});

test("a step of which nothing was recorded can be shown", () => {
  const empty = worldOf("a", STEPS, []);
  expect(show(choose({ step: 20 }), [empty])).toMatchObject({ step: 20, node: null, relaxed: [] });
});

test("a trial without steps shows nothing but its name", () => {
  expect(show(choose({ node: "aux" }), [worldOf("a", [])])).toMatchObject({ trial: "a", step: null, node: null });
  expect(relax([], NO_LOOK, [])).toEqual(NOTHING_SHOWN);
});
