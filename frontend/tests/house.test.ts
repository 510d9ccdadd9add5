/** House rules of the front-end: layers point one way, files are short. */
import { expect, test } from "vitest";

const LONGEST = 300;
const WIDEST = 120;

/** Who may import whom, beside itself. Only `api` talks to the server, only `state` knows the address. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  main: ["panels", "state", "api", "ui"],
  panels: ["draw", "ui", "model", "state", "api"],
  state: ["model", "api"],
  draw: ["model"],
  ui: ["model"],
  model: ["api/types"],
  api: [],
};

/** Path below src -> text. */
const sources = Object.entries(
  import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true }),
).map(([path, text]) => [path.replace("../src/", ""), text] as const);

const layerOf = (path: string): string => path.replace(/\.tsx?$/, "").split("/")[0];

function violations(path: string, text: string): string[] {
  const imports = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g)];
  const targets = imports.map(([, name]) => new URL(name, `file:///${path}`).pathname.slice(1));
  const allowed = MAY_IMPORT[layerOf(path)] ?? [];
  return targets
    .filter((target) => layerOf(target) !== layerOf(path))
    .filter((target) => !allowed.includes(layerOf(target)) && !allowed.includes(target))
    .map((target) => `${path} imports ${target}`);
}

test("there are sources, each in a known layer", () => {
  expect(sources.length).toBeGreaterThan(30);
  expect(sources.filter(([path]) => !(layerOf(path) in MAY_IMPORT))).toEqual([]);
});

test("layers point one way", () => {
  expect(sources.flatMap(([path, text]) => violations(path, text))).toEqual([]);
});

test("an import against the layers is found", () => {
  expect(violations("model/graph.ts", 'import { Heatmap } from "../draw/heatmap";')).toHaveLength(1);
  expect(violations("model/graph.ts", 'const x = import("../draw/camera")')).toHaveLength(1);
  expect(violations("model/graph.ts", 'import type { Graph } from "../api/types";')).toEqual([]);
  expect(violations("panels/graph/stage.tsx", 'import { x } from "../../draw/x";')).toEqual([]);
});

const written = sources.filter(([path]) => path !== "api/types.ts"); // which a program writes

test.each(written)("%s is short, and so are its lines", (_path, text) => {
  const lines = text.split("\n");
  expect(lines.length).toBeLessThanOrEqual(LONGEST);
  expect(lines.filter((line) => line.length > WIDEST)).toEqual([]);
});
