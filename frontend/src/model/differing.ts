/** Where two selections differ most, and since when. Pure. */
import { VALUE } from "./heat";
import type { HistoryLine } from "./history";
import { against } from "./ratio";

export interface Differing {
  readonly node: string;
  readonly role: string;
  readonly pass: number;
  readonly a: number;
  readonly b: number;
  /** A ÷ B as a decimal logarithm; of shares A − B. */
  readonly value: number;
}

export interface Numbers {
  readonly node: string;
  readonly role: string;
  readonly pass: number;
  readonly number: number;
}

/** Tensors that both have, the furthest apart first. */
export function mostDiffering(
  a: readonly Numbers[], b: readonly Numbers[], isShare: boolean, most: number,
): Differing[] {
  const key = ({ node, role, pass }: Numbers): string => `${pass}\n${role}\n${node}`;
  const others = new Map(b.map((each) => [key(each), each.number]));
  const found = a.flatMap((each): Differing[] => {
    const other = others.get(key(each));
    if (other === undefined || !Number.isFinite(other) || !Number.isFinite(each.number)) return [];
    const { node, role, pass, number } = each;
    return [{ node, role, pass, a: number, b: other, value: against(number, other, isShare) }];
  });
  found.sort((one, two) => Math.abs(two.value) - Math.abs(one.value));
  // Of a node that runs many times the pass that differs most says it for all.
  const seen = new Set<string>();
  return found.filter(({ node, role }) => !seen.has(`${role}\n${node}`) && seen.add(`${role}\n${node}`)).slice(0, most);
}

const NOTICEABLE = 0.2; // a factor of 1.6, or 20 points

/** The first step from which on A has been on that side of B; null: always. Undefined: they hardly differ now. */
export function sinceWhen(line: HistoryLine, steps: readonly number[], column: number): number | null | undefined {
  const now = line.values[column];
  if (line.states[column] !== VALUE || Math.abs(now) < NOTICEABLE) return undefined;
  let first = column;
  for (let at = column; at >= 0; at--) {
    if (line.states[at] !== VALUE) continue;
    if (line.values[at] * Math.sign(now) < NOTICEABLE) return steps[first];
    first = at;
  }
  return null;
}

/** A ÷ B column by column; `referenceAt` has the number of B for a column of A. */
export function dividedLine(a: HistoryLine, referenceAt: (column: number) => number, isShare: boolean): HistoryLine {
  const values = new Float64Array(a.values.length).fill(NaN);
  const states = Uint8Array.from(a.states);
  for (let column = 0; column < values.length; column++) {
    if (states[column] !== VALUE) continue;
    const reference = referenceAt(column);
    if (Number.isNaN(reference)) states[column] = 0;
    else values[column] = against(a.values[column], reference, isShare);
  }
  return { values, states };
}
