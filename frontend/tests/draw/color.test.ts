import { expect, test } from "vitest";
import {
  contrast, DIVERGING, INF_COLOR, inkOn, luminance, NAN_COLOR, SEQUENTIAL, SHARES, ZERO_COLOR, type Rgb,
} from "../../src/draw/color";
import { shadeTable } from "../../src/draw/shades";
import { SHADE_ABSENT, SHADE_INF, SHADE_NAN, SHADE_ZERO } from "../../src/model/heat";

/** Lightness as the eye sees it (CIE L*). */
const lightness = (color: Rgb): number => {
  const y = luminance(color);
  return y > 0.008856 ? 116 * Math.cbrt(y) - 16 : 903.3 * y;
};

test("from small to large the map gets lighter, in even steps", () => {
  const steps = SEQUENTIAL.slice(1).map((color, i) => lightness(color) - lightness(SEQUENTIAL[i]));
  const around = (i: number): number => steps.slice(Math.max(0, i - 8), i + 8).reduce((a, b) => a + b, 0);
  for (let i = 0; i < steps.length; i += 8) expect(around(i)).toBeGreaterThan(0.5);
  const [dark, middle, light] = [0, 128, 255].map((i) => lightness(SEQUENTIAL[i]));
  expect(light - dark).toBeGreaterThan(75);
  expect(middle).toBeGreaterThan(dark + 25);
  expect(middle).toBeLessThan(light - 25);
});

test.each(["light", "dark"] as const)("shares leave the %s panel in one direction", (scheme) => {
  const steps = SHARES[scheme].slice(1).map((color, i) => lightness(color) - lightness(SHARES[scheme][i]));
  const sign = scheme === "light" ? -1 : 1;
  for (let i = 0; i < steps.length; i += 8) {
    expect(sign * steps.slice(Math.max(0, i - 8), i + 8).reduce((a, b) => a + b, 0)).toBeGreaterThan(0.5);
  }
});

test.each(["light", "dark"] as const)("around zero the %s map is grey, and both ends stand out alike", (scheme) => {
  const [low, zero, high] = [0, 128, 255].map((i) => DIVERGING[scheme][i]);
  expect(Math.max(...zero) - Math.min(...zero)).toBeLessThan(16);
  const away = [low, high].map((color) => Math.abs(lightness(color) - lightness(zero)));
  expect(Math.abs(away[0] - away[1])).toBeLessThan(12);
  expect(Math.min(...away)).toBeGreaterThan(35);
});

test("between blue and orange there is no green", () => {
  for (const scheme of ["light", "dark"] as const) {
    for (const [r, g, b] of DIVERGING[scheme]) expect(g - Math.max(r, b)).toBeLessThanOrEqual(4);
  }
});

const mapsOf = (scheme: "light" | "dark"): Rgb[] => [...SEQUENTIAL, ...SHARES[scheme], ...DIVERGING[scheme]];

test.each(["light", "dark"] as const)("labels are readable on every %s colour", (scheme) => {
  const all = [...mapsOf(scheme), NAN_COLOR[scheme], INF_COLOR, ZERO_COLOR[scheme]];
  for (const color of all) expect(contrast(color, inkOn(color))).toBeGreaterThanOrEqual(4.5);
});

test.each(["light", "dark"] as const)("what is not a number has a colour that no %s map has", (scheme) => {
  const distance = (a: Rgb, b: Rgb): number => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  for (const color of mapsOf(scheme)) {
    expect(distance(NAN_COLOR[scheme], color)).toBeGreaterThan(75);
    expect(distance(INF_COLOR, color)).toBeGreaterThan(55); // stripes tell it from the orange of a ratio
  }
});

test("the table knows the special shades, and pixels agree with colours", () => {
  const table = shadeTable("log", "light", [255, 255, 255]);
  expect(table.fill[SHADE_NAN]).toBe("rgb(209 0 108)");
  expect(table.fill[SHADE_ABSENT]).toBe("rgb(255 255 255)");
  for (const shade of [0, 128, 255, SHADE_INF, SHADE_ZERO]) {
    const bytes = new Uint8Array(Uint32Array.of(table.pixels[shade]).buffer);
    expect(table.fill[shade]).toBe(`rgb(${bytes[0]} ${bytes[1]} ${bytes[2]})`);
    expect(bytes[3]).toBe(255);
  }
});
