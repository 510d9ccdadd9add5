/** Made-up numbers for the gallery: heat with every special case, histograms that drift, tensors with dead units. */
import { recurrentNetwork, flatNetwork, gaussian, generator, tinyNetwork, transformer } from "./networks";
import { addUp, binOf, type Histogram } from "../src/model/histogram";
import { ABSENT, emptyHeat, HAS_INF, HAS_NAN, VALUE, type Heat } from "../src/model/heat";
import type { GraphSource } from "../src/model/source";

export const NETWORKS = {
  tiny: tinyNetwork,
  recurrent: () => recurrentNetwork(),
  "200": () => transformer(8),
  "3000": () => transformer(48, 7),
  flat: () => flatNetwork(120),
  "flat 3000": () => flatNetwork(3000),
  empty: (): GraphSource => ({ hash: "empty", nodes: [], edges: [] }),
} as const;

export type NetworkName = keyof typeof NETWORKS;
export type HeatName = "gradient" | "mean" | "none";

/** A gradient that fades towards the input, one NaN, one infinity, some zeros, nothing for inputs and targets. */
export function madeUpHeat(source: GraphSource, what: HeatName, shift = 0): Heat | null {
  if (what === "none") return null;
  const random = generator(7);
  const heat = emptyHeat(source.nodes.length);
  source.nodes.forEach((node, i) => {
    const depth = i / source.nodes.length;
    const noise = gaussian(random);
    const lacksGradient = node.kind === "target" || node.node === "lengths" || node.kind === "input";
    heat.states[i] = what === "gradient" && lacksGradient ? ABSENT : VALUE;
    const exponent = -6 * (1 - depth) - 1 + 0.3 * noise + 0.2 * shift;
    heat.values[i] = what === "mean" ? noise * 0.2 * (1 + shift) : 10 ** exponent;
  });
  const computed = source.nodes.flatMap((node, i) => (node.kind === "computed" ? [i] : []));
  if (computed.length > 12) {
    heat.states[computed[Math.floor(computed.length * 0.35)]] = HAS_NAN;
    heat.states[computed[Math.floor(computed.length * 0.6)]] = HAS_INF;
    heat.values[computed[Math.floor(computed.length * 0.8)]] = 0;
  }
  return heat;
}

export function madeUpHistogram(center: number, spread: number, zeros: number, seed: number, count = 4000): Histogram {
  const random = generator(seed);
  const counts = new Float64Array(257);
  for (let i = 0; i < count; i++) counts[random() < zeros ? 128 : binOf(center + spread * gaussian(random))]++;
  return addUp([{ first: 0, counts: [...counts] }].map(trim));
}

function trim({ first, counts }: { first: number; counts: number[] }): Histogram {
  const from = counts.findIndex((c) => c > 0);
  const to = counts.findLastIndex((c) => c > 0);
  return from < 0 ? { first, counts: [] } : { first: from, counts: counts.slice(from, to + 1) };
}

/** Two hundred steps, dense at first. */
export function drifting(): { steps: number[]; histograms: Histogram[] } {
  const steps = Array.from({ length: 200 }, (_, i) => Math.round(20000 * (i / 199) ** 1.7) + i);
  const histograms = steps.map((step, i) => {
    const t = step / 20000;
    return madeUpHistogram(0.012 * t, 0.004 + 0.013 * t, 0.05, i + 1, 1200);
  });
  return { steps, histograms };
}

export function madeUpTensor(samples: number, positions: number, units: number) {
  const random = generator(3);
  const data = new Float32Array(samples * positions * units);
  for (let i = 0; i < data.length; i++) {
    const unit = i % units;
    const dead = unit > units * 0.4 && random() > 0.12;
    data[i] = dead ? 0 : Math.abs(gaussian(random)) * (1 - (0.7 * unit) / units) * 0.05;
  }
  data[17 * positions * units + 5] = NaN;
  data[9 * positions * units + 40] = Infinity;
  return { data, shape: [samples, positions, units] };
}
