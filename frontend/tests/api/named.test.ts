/** Names that nearly all steps share are told once. */
import { columnFromArray, float64, int64, Table, tableFromColumns, utf8 } from "@uwdata/flechette";
import { expect, test } from "vitest";
import { namedIn, stampFor } from "../../src/api/named";
import { StepTable } from "../../src/api/tables";

function table(stamp: string, means: number[], nodes: string[] | null): Table {
  const names = nodes && {
    node: columnFromArray(nodes, utf8()), role: columnFromArray(nodes.map(() => ""), utf8()),
    of: columnFromArray(nodes.map(() => "value"), utf8()), pass: columnFromArray(nodes.map(() => 1), int64()),
    kind: columnFromArray(nodes.map(() => "loss"), utf8()),
  };
  const columns = tableFromColumns({ ...(names ?? {}), mean: columnFromArray(means, float64()) });
  return new Table({ ...columns.schema, metadata: new Map([["names", JSON.stringify(stamp)]]) }, columns.children);
}

const step = (found: Table, what: string): StepTable => new StepTable(found, namedIn(found, what));

test("an answer without names has those that were told before", () => {
  expect(stampFor("steps of t")).toBeNull();
  const first = step(table("one", [1, 2], ["x", "y"]), "steps of t");
  expect(stampFor("steps of t")).toBe("one");
  const second = step(table("one", [3, 4], null), "steps of t");
  expect([second.rows, second.find("y", "value"), second.number(1, "mean"), second.kind(0)]).toEqual([2, 1, 4, "loss"]);
  expect(second.node).toBe(first.node);
});

test("another stamp is about other tensors", () => {
  step(table("two", [1], ["z"]), "steps of u");
  const other = step(table("three", [5], ["w"]), "steps of u");
  expect([other.node, stampFor("steps of u")]).toEqual([["w"], "three"]);
  expect(step(table("two", [7], null), "steps of u").node).toEqual(["z"]);
});

test("names that were never told are a mistake, not an empty step", () => {
  expect(() => namedIn(table("unheard of", [1], null), "steps of v")).toThrow(/does not know/);
});
