/** What could not be recorded, by reason: a thousand times the same is said once. */
import type { Gap } from "../../api/types";

export interface GapGroup {
  /** Numbers that differ are "…". */
  readonly reason: string;
  readonly count: number;
  /** -1: none belongs to a single step. */
  readonly firstStep: number;
  readonly lastStep: number;
  /** Tensors concerned, each once. */
  readonly nodes: readonly string[];
  readonly ofs: readonly string[];
  /** One of them, word by word. */
  readonly example: string;
}

/** Sentences that differ in numbers only are one reason. */
const template = (reason: string): string => reason.replace(/\d+(\.\d+)?/g, "…");

export function groupGaps(gaps: readonly Gap[]): GapGroup[] {
  const groups = new Map<string, Gap[]>();
  for (const gap of gaps) {
    const key = template(gap.reason);
    const list = groups.get(key);
    if (list) list.push(gap);
    else groups.set(key, [gap]);
  }
  return [...groups].map(([reason, list]) => describe(reason, list)).sort((a, b) => b.count - a.count);
}

function describe(reason: string, gaps: readonly Gap[]): GapGroup {
  const steps = gaps.map((gap) => gap.step).filter((step) => step >= 0);
  const same = gaps.every((gap) => gap.reason === gaps[0].reason);
  return {
    reason: same ? gaps[0].reason : reason,
    count: gaps.length,
    firstStep: steps.length ? steps.reduce((a, b) => Math.min(a, b)) : -1,
    lastStep: steps.length ? steps.reduce((a, b) => Math.max(a, b)) : -1,
    nodes: [...new Set(gaps.map((gap) => gap.node))].filter(Boolean),
    ofs: [...new Set(gaps.map((gap) => gap.of))].filter(Boolean),
    example: gaps[0].reason,
  };
}
