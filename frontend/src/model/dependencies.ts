/** The edges of one selected tensor: which of the visible arrows are its own, which belong to its siblings. */
import type { GraphModel } from "./graph";
import { pairKey, type Scene } from "./scene";

export interface Dependencies {
  /** Visible edge -> true where the selected tensor itself has it, false where only another role or pass does. */
  readonly arrows: ReadonlyMap<number, boolean>;
  /** Nothing of this node comes in, or goes out, in any role: marked on that border. */
  readonly startsHere: boolean;
  readonly endsHere: boolean;
}

export const NO_DEPENDENCIES: Dependencies = { arrows: new Map(), startsHere: false, endsHere: false };

/** `record` is the selected tensor (a position in the source); -1 takes all tensors of the node alike. */
export function dependenciesOf(scene: Scene, node: number, record: number): Dependencies {
  if (node < 0) return NO_DEPENDENCIES;
  const { model, itemOfTensor, edgeBetween } = scene;
  const arrows = new Map<number, boolean>();
  for (const side of [model.entering, model.leaving]) {
    const end = side === model.entering ? 1 : 0;
    for (const { links } of side[node].map((i) => model.edges[i])) {
      for (let i = 0; i < links.length; i += 2) {
        const visible = edgeBetween.get(pairKey(itemOfTensor[links[i]], itemOfTensor[links[i + 1]]));
        if (visible === undefined) continue;
        arrows.set(visible, record < 0 || links[i + end] === record || arrows.get(visible) === true);
      }
    }
  }
  const { recurrent } = model.nodes[node];
  return {
    arrows,
    startsHere: model.entering[node].length === 0 && !recurrent,
    endsHere: model.leaving[node].length === 0 && !recurrent,
  };
}

/**
 * The tensor of a node that answers best to a chosen role and pass: both, else the role in its nearest pass, else the
 * pass in the first role. Every node shows something, and the chosen one shows exactly what was chosen.
 */
export function recordFor(model: GraphModel, node: number, role: string | null, pass: number | null): number {
  const { records } = model.nodes[node];
  if (records.length === 1) return records[0];
  let best = records[0];
  let least = Infinity;
  for (const record of records) {
    const described = model.source.nodes[record];
    const otherRole = role !== null && described.role !== role ? 1e6 : 0;
    const distance = pass === null ? 0 : Math.abs(described.pass - pass);
    if (otherRole + distance < least) {
      least = otherRole + distance;
      best = record;
    }
  }
  return best;
}
