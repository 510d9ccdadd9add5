/** From one state to the next: comparing, swapping, linked fields, following. */
import { expect, test } from "vitest";
import { changeLook, compareWith, mergePage, swapped } from "../../src/state/changes";
import { FIRST_STATE, NOTHING_SHOWN, type Look, type Pane, type State } from "../../src/state/look";

const choose = (state: State, look: Partial<Look>, pane: Pane = "a"): State =>
  changeLook(state, look, pane, { ...NOTHING_SHOWN, trial: state.page.look.trial });

test("the newest choice stands first, and one that is taken back is forgotten", () => {
  let state = choose(choose(choose(FIRST_STATE, { step: 1 }), { node: "a" }), { step: 2 });
  expect(state.recent).toEqual(["step", "node"]);
  state = choose(state, { node: null });
  expect(state.recent).toEqual(["step"]);
});

test("a field that differs is chosen for one pane, a linked one for both", () => {
  let state = compareWith(choose(FIRST_STATE, { step: 5 }), { step: 1 });
  state = choose(state, { step: 2, node: "x" }, "b");
  expect(state.page.other).toEqual({ step: 2 });
  expect(state.page.look).toMatchObject({ step: 5, node: "x" });
  expect(compareWith(state, { of: "update", step: undefined }).page.other).toEqual({ of: "update" });
  expect(compareWith(state, null).page.other).toEqual({});
});

test("swapping twice is as before, and once exchanges only what differs", () => {
  const state = compareWith(choose(FIRST_STATE, { step: 5, node: "x" }), { step: 1 });
  const once = swapped(state, NOTHING_SHOWN);
  expect([once.page.look.step, once.page.other.step, once.page.look.node]).toEqual([1, 5, "x"]);
  expect(swapped(once, NOTHING_SHOWN).page).toEqual(state.page);
});

test("swapped trials keep their names, also one that nobody chose", () => {
  const state = compareWith(FIRST_STATE, { trial: "b" });
  const { look, other, trials } = swapped(state, { ...NOTHING_SHOWN, trial: "a" }).page;
  expect([look.trial, other.trial, trials]).toEqual(["b", "a", ["b"]]);
});

test("another main trial takes the place of the old one, so that colours stay", () => {
  let state = mergePage(choose(FIRST_STATE, { trial: "a" }), { trials: ["a", "b"] });
  state = choose(state, { trial: "b" });
  expect(state.page.trials).toEqual(["a", "b"]);
  state = choose(state, { trial: "c" });
  expect(state.page.trials).toEqual(["a", "c"]);
});

test("choosing a step ends following; other choices do not", () => {
  const state = mergePage(FIRST_STATE, { follow: true });
  expect(choose(state, { node: "x" }).page.follow).toBe(true);
  expect(choose(state, { step: 3 }).page.follow).toBe(false);
});

test("parts of the page are merged one level deep", () => {
  const { page } = mergePage(FIRST_STATE, { tab: "run", heat: { ...FIRST_STATE.page.heat, mode: "past" }, open: ["a"] });
  expect(page).toMatchObject({ tab: "run", heat: { statistic: "abs_mean", mode: "past" }, open: ["a"] });
});

test("another step forgets of which type the one before was; each pane has its own", () => {
  let state = choose(FIRST_STATE, { step: 5, stepType: "b" });
  expect(state.page.look).toMatchObject({ step: 5, stepType: "b" });
  expect(choose(state, { node: "x" }).page.look.stepType).toBe("b");
  expect(choose(state, { step: 8 }).page.look.stepType).toBeNull();
  state = choose(compareWith(state, { step: 1 }), { step: 2, stepType: "a" }, "b");
  expect(state.page.other).toEqual({ step: 2, stepType: "a" });
  expect(state.page.look).toMatchObject({ step: 5, stepType: "b" });
});
