/** Made-up recordings of networks of all sizes, shaped as the recorder writes them. */
import type { GraphSource, GraphSourceEdge, GraphSourceNode } from "../src/model/source";

type Weights = Record<string, number[]>;

class Sketch {
  readonly nodes: GraphSourceNode[] = [];
  private readonly edges: GraphSourceEdge[] = [];
  private readonly passes = new Map<string, number>();

  add(node: string, kind: string, shape: number[], from: number[] = [], more: Partial<GraphSourceNode> = {}): number {
    const role = more.role ?? "";
    const pass = (this.passes.get(`${node} ${role}`) ?? 0) + 1;
    this.passes.set(`${node} ${role}`, pass);
    const place = this.nodes.push({
      node, role, pass, kind, shape, module: "", source: "model.py:38", type: "linear", ...more,
    }) - 1;
    from.forEach((a, i) => this.edges.push([a, place, [`${i}`]]));
    return place;
  }

  /** Weights of a module (recorded before everything else in reality) and then what it returns. */
  module(address: string, type: string, shape: number[], from: number[], weights: Weights = {}): number {
    const own = Object.entries(weights).map(([name, size]) =>
      this.add(`${address}.${name}`, "parameter", size, [], { module: address }),
    );
    return this.add(address, "computed", shape, [...from, ...own], { module: address, type });
  }

  linear(address: string, shape: number[], from: number[], width: number): number {
    const out = shape[shape.length - 1];
    return this.module(address, "linear", shape, from, { weight: [out, width], bias: [out] });
  }

  done(hash: string): GraphSource {
    return { hash, nodes: this.nodes, edges: this.edges };
  }
}

/** Five nodes: the smallest thing that anybody records. */
export function tinyNetwork(): GraphSource {
  const s = new Sketch();
  const input = s.add("input", "input", [64, 12]);
  const target = s.add("target", "target", [64, 1]);
  const weight = s.add("weight", "parameter", [1, 12]);
  const output = s.add("output", "output", [64, 1], [input, weight]);
  s.add("loss", "loss", [], [output, target], { type: "mse_loss" });
  return s.done("tiny");
}

/** A recurrent network with roles, passes, two losses: about twenty boxes, like the tutorial. */
export function recurrentNetwork(steps = 12, sums = 5): GraphSource {
  const s = new Sketch();
  const input = s.add("inputs", "input", [64, 12, 5]);
  const lengths = s.add("lengths", "input", [64]);
  const target = s.add("target", "target", [64, 5]);
  const hidden = s.linear("encoder.in_proj", [64, 12, 128], [input], 5);
  const norm = s.module("encoder.norm", "layer_norm", [64, 12, 128], [hidden], { weight: [128], bias: [128] });
  const encoded = s.module("encoder", "add", [64, 12, 128], [norm, hidden]);
  let state = s.add("memory.first", "parameter", [128], [], { module: "memory" });
  const partial: number[] = [];
  for (let t = 0; t < steps; t++) {
    const gate = s.linear("memory.gate", [64, 128], [encoded, state], 256);
    const update = s.linear("memory.update", [64, 128], [encoded, state, lengths], 256);
    state = s.add("memory.state", "computed", [64, 128], [gate, update, state], { module: "memory", type: "lerp" });
    const role = `sequence ${(t % sums) + 1}`;
    partial.push(s.add("partial sums", "computed", [64, 128], [state], { role, modules: ["memory"], type: "sum" }));
  }
  const decoded = s.linear("decoder.hidden", [64, 12, 128], [state, ...partial.slice(-sums)], 128);
  const leaky = s.module("decoder.leaky", "leaky_relu", [64, 12, 5], [decoded]);
  const sigmoid = s.add("output", "output", [64, 5], [leaky], { type: "sigmoid" });
  s.add("loss", "loss", [], [sigmoid, target], { type: "binary_cross_entropy" });
  s.add("auxiliary loss", "loss", [], [decoded, target], { type: "mse_loss" });
  return s.done(`recurrent${steps}`);
}

/** A transformer; every expert beyond the first adds seven nodes to every block. 25 nodes a block with one. */
export function transformer(blocks: number, experts = 1): GraphSource {
  const s = new Sketch();
  const full = [8, 64, 256];
  const ids = s.add("input_ids", "input", [8, 64]);
  const labels = s.add("labels", "target", [8, 64]);
  const tokens = s.module("transformer.wte", "embedding", full, [ids], { weight: [5000, 256] });
  const places = s.module("transformer.wpe", "embedding", [64, 256], [], { weight: [64, 256] });
  let stream = s.module("transformer.drop", "dropout", full, [tokens, places]);
  for (let i = 0; i < blocks; i++) {
    const at = `transformer.h.${i}`;
    const ln1 = s.module(`${at}.ln_1`, "layer_norm", full, [stream], { weight: [256], bias: [256] });
    const qkv = s.linear(`${at}.attn.c_attn`, [8, 64, 768], [ln1], 256);
    const scores = s.module(`${at}.attn.attn_dropout`, "softmax", [8, 4, 64, 64], [qkv]);
    const proj = s.linear(`${at}.attn.c_proj`, full, [scores, qkv], 256);
    const attn = s.module(`${at}.attn`, "dropout", full, [proj]);
    const ln2 = s.module(`${at}.ln_2`, "layer_norm", full, [attn, stream], { weight: [256], bias: [256] });
    const outs = Array.from({ length: experts }, (_, k) => {
      const mlp = experts > 1 ? `${at}.mlp.experts.${k}` : `${at}.mlp`;
      const up = s.linear(`${mlp}.c_fc`, [8, 64, 1024], [ln2], 256);
      const act = s.module(`${mlp}.act`, "gelu", [8, 64, 1024], [up]);
      return s.linear(`${mlp}.c_proj`, full, [act], 1024);
    });
    const mlp = s.module(`${at}.mlp`, "dropout", full, outs);
    stream = s.module(at, "add", full, [mlp, attn, stream]);
  }
  const last = s.module("transformer.ln_f", "layer_norm", full, [stream], { weight: [256], bias: [256] });
  const logits = s.module("lm_head", "linear", [8, 64, 5000], [last], { weight: [5000, 256] });
  s.add("loss", "loss", [], [logits, labels], { type: "cross_entropy" });
  return s.done(`transformer${blocks}x${experts}`);
}

/** Nothing but functions in one flat heap: no module to fold anything into. */
export function flatNetwork(count: number, seed = 1): GraphSource {
  const s = new Sketch();
  const random = generator(seed);
  const places = [s.add("input", "input", [32, 16])];
  while (places.length < count) {
    const recent = Math.max(0, places.length - 12);
    const from = [places[places.length - 1], places[recent + Math.floor(random() * (places.length - recent))]];
    places.push(s.add(`op_${places.length}`, "computed", [32, 16], [...new Set(from)], { type: "add" }));
  }
  return s.done(`flat${count}`);
}

/** Numbers that are the same on every machine and in every run. */
export function generator(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function gaussian(random: () => number): number {
  const u = Math.max(random(), 1e-12);
  return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * random());
}
