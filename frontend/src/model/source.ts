/** What the model is built from: a recorded graph, exactly as the server sends it. */

export const KINDS = ["input", "parameter", "buffer", "constant", "computed", "target", "loss", "output"] as const;
export type Kind = (typeof KINDS)[number];

/** It stands beside those who read it. */
export const isStored = (kind: Kind): boolean => kind === "parameter" || kind === "buffer" || kind === "constant";

/** One recorded tensor: a node, in one of its roles, in one pass. */
export interface GraphSourceNode {
  readonly node: string;
  readonly role: string;
  readonly pass: number;
  readonly kind: string;
  /** Address of the module it belongs to; empty outside of all modules. */
  readonly module: string;
  /** Addresses of the modules that were running, outermost first. */
  readonly modules?: readonly string[] | null;
  readonly source: string;
  /** The operation that made it: `linear`, `relu`, … */
  readonly type?: string | null;
  readonly shape?: readonly number[] | null;
}

/** From, to (positions in `nodes`), and the arguments through which the value was used. */
export type GraphSourceEdge = readonly [number, number, readonly string[]];

export interface GraphSource {
  readonly hash: string;
  readonly nodes: readonly GraphSourceNode[];
  readonly edges: readonly GraphSourceEdge[];
}

/** A kind that this page does not know yet is drawn as computed: a newer recorder must not break an older page. */
export function asKind(text: string): Kind {
  return (KINDS as readonly string[]).includes(text) ? (text as Kind) : "computed";
}
