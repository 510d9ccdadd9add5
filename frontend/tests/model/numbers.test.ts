import { expect, test } from "vitest";
import { commonAddress, prefixes, relativeName, shapeText, shorten } from "../../src/model/names";
import { exactFloat32, exactNumber, percent, shortNumber, wholeNumber } from "../../src/model/numbers";

test.each([
  [0, "0"], [-0, "0"], [1, "1"], [-0.1, "−0.1"], [0.048, "0.048"], [0.00371, "3.71e-3"], [-2.1e-4, "−2.1e-4"],
  [12400, "12\u202f400"], [1234.5, "1235"], [999.6, "1000"], [3.14159, "3.14"], [1e6, "1e6"], [9.876e12, "9.88e12"],
  [NaN, "NaN"], [Infinity, "∞"], [-Infinity, "−∞"], [100, "100"], [0.9999, "1"],
])("%d is read as %s", (value, text) => {
  expect(shortNumber(value)).toBe(text);
});

test("exact numbers come back as they were", () => {
  for (const value of [0.1, -1 / 3, 1e-300, 123456789.123]) expect(Number(exactNumber(value))).toBe(value);
  expect([exactNumber(1.25e-6), exactFloat32(Math.fround(-1.25e-6))]).toEqual(["1.25e-6", "-1.25e-6"]);
  expect([exactNumber(NaN), exactNumber(-Infinity), exactNumber(-0)]).toEqual(["nan", "-inf", "-0"]);
});

test("a 32-bit float is written as short as it can be read back", () => {
  expect(exactFloat32(Math.fround(0.1))).toBe("0.1");
  for (let i = 0; i < 500; i++) {
    const value = Math.fround(Math.tan(i) * 10 ** ((i % 40) - 20));
    expect(Math.fround(Number(exactFloat32(value)))).toBe(value);
  }
});

test("counts and parts", () => {
  expect([wholeNumber(1234567), wholeNumber(-12), percent(0.614)]).toEqual(["1\u202f234\u202f567", "−12", "61.4 %"]);
});

test("names", () => {
  expect(prefixes("a.b.c")).toEqual(["a", "a.b", "a.b.c"]);
  expect(prefixes("")).toEqual([]);
  expect(commonAddress("a.b.c", "a.b.d")).toBe("a.b");
  expect(commonAddress("a.bc", "a.bd")).toBe("a");
  expect([relativeName("a.b.w", "a.b"), relativeName("a.bc", "a.b")]).toEqual(["w", "a.bc"]);
  expect(relativeName("x", "")).toBe("x");
  expect(shorten("self_attn.out_proj.weight", 11)).toBe("self_…eight");
  expect(shorten("short", 11)).toBe("short");
  expect([shapeText([64, 12]), shapeText([]), shapeText(null)]).toEqual(["64×12", "scalar", ""]);
});
