/** Layers that stand out from the same layer in other blocks, and since when. */
import { VALUE } from "../../model/layers/derive";
import type { LayersData } from "./use_layers";

export interface Standing {
  readonly node: string;
  readonly value: number;
  readonly since: number;
}

const MOST_CELLS = 250_000; // of more it is worked out only if the picture shows it, too
const RATIO = 0.7; // five times as large, or as small
const POINTS = 0.3;

export function standsOut(data: LayersData): Standing[] {
  const { cells, derived, group, hasBlocks, reference, statistic, steps, table } = data;
  if (!hasBlocks || !table || steps.length === 0) return [];
  if (reference !== "blocks" && cells.rows * cells.columns > MOST_CELLS) return [];
  const least = statistic?.isShare ? POINTS : RATIO;
  const blocks = derived("blocks");
  const found: Standing[] = [];
  for (let record = 0; record < cells.rows; record++) {
    if (group(record).length < 3) continue;
    const { values, states } = blocks.line(record);
    const isOut = (column: number): boolean => states[column] === VALUE && Math.abs(values[column]) > least;
    const last = cells.columns - 1;
    if (!isOut(last)) continue;
    let since = last;
    while (since > 0 && isOut(since - 1)) since--;
    found.push({ node: table.node[record], value: values[last], since: steps[since].number });
  }
  return found.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 5);
}
