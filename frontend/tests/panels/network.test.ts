import { expect, test } from "vitest";
import type { Module } from "../../src/api/types";
import { ModuleTree, nodeFinder, sizeOf } from "../../src/panels/network/module_tree";
import { rowKeyFor } from "../../src/panels/network/use_tree";

const weight = (name: string, ...shape: number[]) => ({ name, shape, dtype: "float32", trainable: true });
const module = (address: string, type: string, children: string[], more: Partial<Module> = {}): Module => ({
  address, type, children, parameters: 0, trainable: 0, own: [], settings: "", ...more,
});

const modules = [
  module("", "Net", ["encoder", "head"], { parameters: 26, trainable: 20 }),
  module("encoder", "Sequential", ["encoder.0", "encoder.1"], { parameters: 20, trainable: 20 }),
  module("encoder.0", "Linear", [], { parameters: 20, trainable: 20, own: [weight("encoder.0.weight", 4, 5)] }),
  module("encoder.1", "ReLU", []),
  module("head", "Linear", [], { parameters: 6, own: [weight("head.weight", 2, 3)] }),
];
const tree = new ModuleTree(modules);
const labels = (open: string[]) => tree.rows(new Set(open)).map((row) => `${"  ".repeat(row.level)}${row.label}`);

test("rows follow the open modules, names are relative to what is around them", () => {
  expect(labels([])).toEqual(["Net"]);
  expect(labels([""])).toEqual(["Net", "  encoder", "  head"]);
  expect(labels(["", "encoder", "encoder.0"])).toEqual([
    "Net", "  encoder", "    0", "      weight", "    1", "  head",
  ]);
});

test("rows know their neighbours, and whether there is something inside", () => {
  const rows = tree.rows(new Set(["", "encoder"]));
  const relu = rows.find((row) => row.module.type === "ReLU");
  expect(relu).toMatchObject({ place: 2, of: 2, parent: "m:encoder", expanded: null });
  expect(rows[0]).toMatchObject({ expanded: true, parent: null });
  expect(rows.at(-1)).toMatchObject({ label: "head", expanded: false, place: 2 });
});

test("a search shows what it finds and everything around it", () => {
  expect(tree.found("weight encoder").map((row) => row.label)).toEqual(["Net", "encoder", "0", "weight"]);
  expect(tree.found("relu").map((row) => row.label)).toEqual(["Net", "encoder", "1"]);
  expect(tree.found("nothing like this")).toEqual([]);
});

test("at first as much is open as fits, outer modules before inner ones", () => {
  expect([...tree.openAtFirst(3)]).toEqual([""]);
  expect([...tree.openAtFirst(5)]).toEqual(["", "encoder"]);
  expect([...tree.openAtFirst(100)].sort()).toEqual(["", "encoder", "encoder.0", "head"]);
});

test("sizes", () => {
  expect([tree.parameters, tree.trainable]).toEqual([26, 20]);
  expect(sizeOf(weight("w", 4, 5))).toBe(20);
  expect(sizeOf(weight("scalar"))).toBe(1);
  expect(sizeOf({ ...weight("lazy"), shape: null })).toBeNull();
});

test("several watched models are several roots", () => {
  const two = new ModuleTree([module("a", "A", []), module("b", "B", ["b.x"]), module("b.x", "X", [])]);
  expect(two.roots.map((root) => root.address)).toEqual(["a", "b"]);
});

test("a row leads to its own node, else to the last one computed inside, else to any inside", () => {
  const find = nodeFinder([
    { node: "encoder.0.weight", module: "encoder.0", kind: "parameter" },
    { node: "encoder.0", module: "encoder.0", kind: "computed" },
    { node: "encoder.sum", module: "encoder", kind: "computed" },
    { node: "head.weight", module: "head", kind: "parameter" },
  ]);
  const rows = tree.rows(new Set(tree.byAddress.keys()));
  expect(Object.fromEntries(rows.map((row) => [row.key, find(row)]))).toEqual({
    "m:": "encoder.sum",
    "m:encoder": "encoder.sum",
    "m:encoder.0": "encoder.0",
    "p:encoder.0.weight": "encoder.0.weight",
    "m:encoder.1": null,
    "m:head": "head.weight",
    "p:head.weight": "head.weight",
  });
});

test("a node is found in the tree", () => {
  expect(rowKeyFor(tree, "head.weight", "head")).toBe("p:head.weight");
  expect(rowKeyFor(tree, "encoder.0", "encoder.0")).toBe("m:encoder.0");
  expect(rowKeyFor(tree, "memory", "encoder")).toBe("m:encoder");
  expect(rowKeyFor(tree, "loss", "")).toBeNull();
  expect(rowKeyFor(tree, null, "")).toBeNull();
});

test("three thousand modules, all open, and found by parts of their names", () => {
  const many = Array.from({ length: 3000 }, (_, i) =>
    module(`blocks.${i}`, "Block", [], { own: [weight(`blocks.${i}.weight`, 2, 2)] }));
  const big = new ModuleTree([module("", "Net", many.map((one) => one.address)), ...many]);
  expect(big.rows(new Set(big.byAddress.keys()))).toHaveLength(6001);
  expect(big.found("2999 weight")).toHaveLength(3);
});
