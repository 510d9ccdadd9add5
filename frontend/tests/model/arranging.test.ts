import { expect, test } from "vitest";
import {
  EMPTY_LAYOUT, isArranged, withGroup, withName, withoutGroup, withoutPin, withPin,
} from "../../src/model/arranging";

test("places, names and groups come and go without touching what was saved", () => {
  const pinned = withPin(EMPTY_LAYOUT, "n:a", [3, 4]);
  expect(pinned.pins).toEqual({ "n:a": [3, 4] });
  expect(withoutPin(pinned, "n:a")).toEqual(EMPTY_LAYOUT);
  expect(EMPTY_LAYOUT.pins).toEqual({});
  expect([isArranged(EMPTY_LAYOUT), isArranged(pinned)]).toEqual([false, true]);
});

test("an empty name, or its own, gives the own name back", () => {
  const named = withName(EMPTY_LAYOUT, "decoder.out", "  the answer ");
  expect(named.renames).toEqual({ "decoder.out": "the answer" });
  expect(withName(named, "decoder.out", " ").renames).toEqual({});
  expect(withName(named, "decoder.out", "decoder.out").renames).toEqual({});
});

test("a prefix is a group once", () => {
  const grouped = withGroup(EMPTY_LAYOUT, "loss_ ");
  expect(grouped.groups).toEqual(["loss_"]);
  expect(withGroup(grouped, "loss_")).toBe(grouped);
  expect(withGroup(grouped, " ")).toBe(grouped);
  expect(withoutGroup(grouped, "loss_").groups).toEqual([]);
});
