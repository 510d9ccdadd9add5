import { expect, test } from "vitest";
import { dividedLine, mostDiffering, sinceWhen, type Numbers } from "../../src/model/differing";
import { ABSENT, VALUE } from "../../src/model/heat";

const of = (node: string, number: number): Numbers => ({ node, role: "", pass: 1, number });

test("the furthest apart first, whichever is larger; what one lacks is left out", () => {
  const found = mostDiffering(
    [of("a", 1), of("b", 100), of("c", 0.001), of("only here", 5), of("nan", NaN)],
    [of("a", 1.1), of("b", 1), of("c", 10), of("nan", 1)], false, 9,
  );
  expect(found.map(({ node }) => node)).toEqual(["c", "b", "a"]);
  expect(found[1].value).toBeCloseTo(2);
  expect(mostDiffering([of("a", 0.9)], [of("a", 0.1)], true, 9)[0].value, "shares are subtracted").toBeCloseTo(0.8);
});

const line = (...values: number[]) => ({
  values, states: values.map((value) => (Number.isNaN(value) ? ABSENT : VALUE)),
});

test("since when A is on that side of B", () => {
  const steps = [0, 10, 20, 30, 40];
  expect(sinceWhen(line(0, 0.1, -1, NaN, -2), steps, 4)).toBe(20);
  expect(sinceWhen(line(1, 1, 1, 1, 1), steps, 4)).toBeNull();
  expect(sinceWhen(line(1, 1, 1, 1, 0.05), steps, 4)).toBeUndefined();
  expect(sinceWhen(line(-1, 1, 1, 1, 1), steps, 2)).toBe(10);
});

test("A ÷ B, where B has a number", () => {
  const found = dividedLine(line(1, 10, 5), (column) => [1, 1, NaN][column], false);
  expect([...Array.from(found.values)].slice(0, 2)).toEqual([0, 1]);
  expect(Array.from(found.states)).toEqual([VALUE, VALUE, ABSENT]);
});
