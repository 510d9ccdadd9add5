/** Answers of the server become columns and rows that are found by name. */
import { bool, columnFromArray, float64, int16, int64, list, Table, tableFromColumns, uint32, utf8 } from "@uwdata/flechette";
import { expect, test } from "vitest";
import { heatTable, metricTable, StepTable } from "../../src/api/tables";

function withFacts(table: Table, facts: Record<string, unknown>): Table {
  const metadata = new Map(Object.entries(facts).map(([name, fact]) => [name, JSON.stringify(fact)]));
  return new Table({ ...table.schema, metadata }, table.children);
}

const ROWS = {
  node: ["a", "a", "a", "a", "w"], role: ["", "", "first", "", ""], of: ["value", "value", "value", "gradient:l", "parameter"],
  pass: [1, 2, 1, 1, 1],
};

function stepTable(): StepTable {
  const text = (values: readonly string[]) => columnFromArray([...values], utf8());
  const columns = tableFromColumns({
    node: text(ROWS.node), role: text(ROWS.role), of: text(ROWS.of), kind: text(ROWS.node), dtype: text(ROWS.node),
    pass: columnFromArray(ROWS.pass, int64()),
    mean: columnFromArray([1, 2, NaN, null, 5], float64()),
    hist_first: columnFromArray([128, 0, 1, 2, 3], int16()),
    hist: columnFromArray([[1, 2], [3], [], [4], [5]], list(uint32())),
    shape: columnFromArray([[4, 3], [4, 3], [6], [], [3, 3]], list(int64())),
    batch_dim: columnFromArray([0, 0, 0, -1, -1], int64()),
    raw: columnFromArray([true, false, false, false, true], bool()),
  });
  return new StepTable(withFacts(columns, { step: { number: 7, type: "long", categories: [] } }));
}

test("a tensor is found by its names; what is not said is the first there is", () => {
  const table = stepTable();
  expect(table.find("a", "value")).toBe(0);
  expect(table.find("a", "value", "", 2)).toBe(1);
  expect(table.find("a", "value", "first", null)).toBe(2);
  expect(table.find("a", "gradient:l", "", 1)).toBe(3);
  expect([table.find("a", "update"), table.find("b", "value"), table.find("a", "value", "", 3)]).toEqual([-1, -1, -1]);
});

test("the value of a parameter is found under the word that the page uses", () => {
  const table = stepTable();
  expect([table.find("w", "value"), table.find("w", "parameter"), table.of[4]]).toEqual([4, 4, "value"]);
});

test("numbers, lists and facts of a row", () => {
  const table = stepTable();
  expect(Array.from(table.statistic("mean"))).toEqual([1, 2, NaN, NaN, 5]);
  expect([table.histFirst(0), Array.from(table.hist(0)), Array.from(table.hist(2))]).toEqual([128, [1, 2], []]);
  expect([table.shape(0), table.shape(3), table.raw(4), table.raw(1)]).toEqual([[4, 3], [], true, false]);
  expect([table.facts.number, table.batch]).toEqual([7, 6]);
  expect(table.number(0, "nothing like this")).toBeNaN();
});

test("a heat says where a step stands in its rows", () => {
  const columns = tableFromColumns({
    node: columnFromArray(["w"], utf8()), of: columnFromArray(["parameter"], utf8()),
    values: columnFromArray([[1, 2, 3]], list(float64())),
  });
  const heat = heatTable(withFacts(columns, { ordinals: [0, 4, 9] }));
  expect([heat.place(4), heat.place(5), heat.of[0], heat.values(0)[heat.place(9)]]).toEqual([1, -1, "value", 3]);
});

test("metrics come apart by name, and by type where there are several", () => {
  const columns = tableFromColumns({
    step: columnFromArray([0, 0, 1, 1], int64()), time: columnFromArray([5, 5, 6, 6], float64()),
    name: columnFromArray(["loss", "lr", "loss", "lr"], utf8()), type: columnFromArray(["a", "a", "b", "a"], utf8()),
    value: columnFromArray([3, 0.1, 2, 0.2], float64()),
  });
  const metrics = metricTable(columns);
  expect(metrics.names).toEqual(["loss", "lr"]);
  expect(Array.from(metrics.curves.get("lr")?.values ?? [])).toEqual([0.1, 0.2]);
  expect(metrics.byType.get("loss")?.map(({ type, steps }) => [type, ...steps])).toEqual([["a", 0], ["b", 1]]);
  expect(metrics.byType.has("lr")).toBe(false);
});

test("a metric has a range where ranks differ", () => {
  const numbersOf = (values: number[]) => columnFromArray(values, float64());
  const columns = tableFromColumns({
    step: columnFromArray([0, 0, 1, 1], int64()), time: numbersOf([5, 5, 6, 6]),
    name: columnFromArray(["loss", "lr", "loss", "lr"], utf8()), type: columnFromArray(["a", "a", "a", "a"], utf8()),
    value: numbersOf([3, 0.1, 2, 0.2]), low: numbersOf([2, 0.1, 2, 0.2]), high: numbersOf([4, 0.1, 2, 0.2]),
  });
  const { curves } = metricTable(columns);
  expect(curves.get("loss")?.range).toEqual({ low: Float64Array.of(2, 2), high: Float64Array.of(4, 2) });
  expect(curves.get("lr")?.range).toBeNull();
});
