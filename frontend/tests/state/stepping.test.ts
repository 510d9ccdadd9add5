/** Keys that lead from step to step. */
import { expect, test } from "vitest";
import { NOTHING_SHOWN, type Shown } from "../../src/state/look";
import type { World } from "../../src/state/relax";
import { stepAfter } from "../../src/state/stepping";

const STEPS = [[0, "a"], [5, "a"], [5, "b"], [8, "a"], [9, "b"]] as const;
const WORLD: World = {
  trial: "t", numbers: STEPS.map(([n]) => n), types: STEPS.map(([, type]) => type), ordinals: [0, 1, 2, 3, 4],
  tensors: null, has: () => null,
};
const at = (ordinal: number): Shown =>
  ({ ...NOTHING_SHOWN, trial: "t", ordinal, step: STEPS[ordinal][0], type: STEPS[ordinal][1] });

test("one step on and back, and no further than the ends", () => {
  expect(stepAfter(WORLD, at(3), 1, null)).toEqual({ step: 9 });
  expect(stepAfter(WORLD, at(4), 1, null)).toEqual({ step: 9 });
  expect(stepAfter(WORLD, at(4), -100, null)).toEqual({ step: 0 });
});

test("a number that was recorded twice is passed, not a dead end", () => {
  expect(stepAfter(WORLD, at(2), -1, null)).toEqual({ step: 0 });
  expect(stepAfter(WORLD, at(1), 1, null)).toEqual({ step: 8 });
});

test("steps of one type; where the number does not say which, the type is chosen, too", () => {
  expect(stepAfter(WORLD, at(0), 1, "a")).toEqual({ step: 5, type: "a" });
  expect(stepAfter(WORLD, at(2), 1, "b")).toEqual({ step: 9 });
  expect(stepAfter(WORLD, at(4), -1, "b")).toEqual({ step: 5, type: "b" });
});

test("a trial without steps leads nowhere", () => {
  expect(stepAfter({ ...WORLD, numbers: [], types: [], ordinals: [] }, NOTHING_SHOWN, 1, null)).toBeNull();
});
