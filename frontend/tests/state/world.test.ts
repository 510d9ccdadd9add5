/** What the server says about a trial, as the rules for choices read it. */
import { expect, test } from "vitest";
import type { Tensors, Trial } from "../../src/api/types";
import { batchOf, entriesOf, indexOf, ofsOf, worldOf } from "../../src/state/world";

const TRIAL = {
  name: "a", types: ["short", "long"], losses: ["main", "aux"],
  steps: { ordinal: [0, 2, 5, 6], number: [0, 10, 20, 30], type: [0, 1, 0, 1], tensors: [2, 4, 1, 3] },
} as unknown as Trial;

const TENSORS: Tensors = {
  node: ["w", "w", "x", "x"], role: ["", "", "b", "a"], passes: [1, 1, 1, 2], kind: ["parameter", "parameter", "", ""],
  of: ["parameter", "update", "value", "gradient:aux"], batch: [0, 0, 4, 6],
  sets: [[0, 2], [0, 1, 2, 3]], ordinals: [0, 2, 5], setOf: [0, 1, -1],
};

test("steps know their tensors; what is not known allows everything", () => {
  const world = worldOf("a", TRIAL, TENSORS);
  expect(world.types).toEqual(["short", "long", "short", "long"]);
  expect([0, 1].map(world.has)).toEqual([[0, 2], [0, 1, 2, 3]]);
  expect(world.has(2), "its statistics are lost").toBeNull();
  expect(world.has(3), "it came after the list was made").toBeNull();
  const bare = { ...TRIAL, steps: { ...TRIAL.steps, tensors: [2, 4, 0, 3] } } as Trial;
  expect(worldOf("a", bare, TENSORS).has(2), "nothing was recorded of it").toEqual([]);
  expect(worldOf("a", TRIAL, null).tensors).toBeNull();
  expect(worldOf("gone", null, null).numbers).toEqual([]);
});

test("kinds of value are offered in one order, parameters as values", () => {
  const { tensors } = worldOf("a", TRIAL, TENSORS);
  expect(ofsOf(tensors, TRIAL.losses)).toEqual(["value", "gradient:aux", "update"]);
  expect(ofsOf(tensors, [])).toEqual(["value", "update", "gradient:aux"]);
});

test("roles, passes and samples of a node", () => {
  const { tensors } = worldOf("a", TRIAL, TENSORS);
  const index = tensors && indexOf(tensors);
  const [x, w] = ["x", "w"].map((node) => index?.ofNode.get(node) ?? []);
  expect([x, w]).toEqual([[2, 3], [0, 1]]);
  expect(entriesOf(tensors, "role", x)).toEqual(["b", "a"]);
  expect(entriesOf(tensors, "pass", x)).toEqual([1, 2]);
  expect([batchOf(tensors, x), batchOf(tensors, w)]).toEqual([6, 0]);
  expect([index?.manyRoles, index?.manyPasses]).toEqual([true, true]);
});
