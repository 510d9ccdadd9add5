/** Keys that lead from step to step. */
import { expect, test } from "vitest";
import { NO_LOOK, NOTHING_SHOWN, type Shown } from "../../src/state/look";
import { relax, type World } from "../../src/state/relax";
import { stepAfter } from "../../src/state/stepping";

const STEPS = [[0, "a"], [5, "a"], [5, "b"], [8, "a"], [9, "b"]] as const;
const WORLD: World = {
  trial: "t", numbers: STEPS.map(([n]) => n), types: STEPS.map(([, type]) => type), ordinals: [0, 1, 2, 3, 4],
  tensors: null, has: () => null,
};
const at = (ordinal: number): Shown =>
  ({ ...NOTHING_SHOWN, trial: "t", ordinal, step: STEPS[ordinal][0], type: STEPS[ordinal][1] });

test("one step on and back, and no further than the ends", () => {
  expect(stepAfter(WORLD, at(3), 1, null)).toEqual({ step: 9, stepType: null });
  expect(stepAfter(WORLD, at(4), 1, null)).toEqual({ step: 9, stepType: null });
  expect(stepAfter(WORLD, at(4), -100, null)).toEqual({ step: 0, stepType: null });
});

test("of several steps with one number each is passed", () => {
  expect(stepAfter(WORLD, at(0), 1, null)).toEqual({ step: 5, stepType: "a" });
  expect(stepAfter(WORLD, at(1), 1, null)).toEqual({ step: 5, stepType: "b" });
  expect(stepAfter(WORLD, at(2), 1, null)).toEqual({ step: 8, stepType: null });
  expect(stepAfter(WORLD, at(3), -1, null)).toEqual({ step: 5, stepType: "b" });
  expect(stepAfter(WORLD, at(2), -1, null)).toEqual({ step: 5, stepType: "a" });
  expect(stepAfter(WORLD, at(1), -1, null)).toEqual({ step: 0, stepType: null });
});

test("a choice made so is shown, and the keys lead from one end to the other and back", () => {
  const walk = (from: number, by: number): number[] => {
    let shown = at(from);
    const seen: number[] = [];
    for (let pressed = 0; pressed < 10; pressed++) {
      const choice = stepAfter(WORLD, shown, by, null);
      shown = relax([WORLD], { ...NO_LOOK, ...choice }, ["step", "stepType"]);
      seen.push(shown.ordinal as number);
    }
    return [...new Set(seen)];
  };
  expect(walk(0, 1)).toEqual([1, 2, 3, 4]);
  expect(walk(4, -1)).toEqual([3, 2, 1, 0]);
});

test("of several with one number and one type the newest is meant, and nobody gets stuck at it", () => {
  const twice: World = { ...WORLD, types: ["a", "a", "a", "a", "b"] };
  expect(stepAfter(twice, { ...at(0), type: "a" }, 1, null)).toEqual({ step: 5, stepType: null });
  expect(stepAfter(twice, { ...at(2), type: "a" }, -1, null)).toEqual({ step: 0, stepType: null });
  expect(stepAfter(twice, { ...at(2), type: "a" }, 1, null)).toEqual({ step: 8, stepType: null });
});

test("steps of one type; where the number does not say which, the type does", () => {
  expect(stepAfter(WORLD, at(0), 1, "a")).toEqual({ step: 5, stepType: "a" });
  expect(stepAfter(WORLD, at(2), 1, "b")).toEqual({ step: 9, stepType: null });
  expect(stepAfter(WORLD, at(4), -1, "b")).toEqual({ step: 5, stepType: "b" });
});

test("a trial without steps leads nowhere", () => {
  expect(stepAfter({ ...WORLD, numbers: [], types: [], ordinals: [] }, NOTHING_SHOWN, 1, null)).toBeNull();
});
