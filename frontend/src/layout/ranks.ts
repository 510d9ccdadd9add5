/** Which column each box of one level stands in. */

/**
 * Columns by the longest path from a start. Then boxes that nothing flows into move next to whoever reads them (a
 * weight belongs beside its layer, not at the far left), and so do boxes with more readers than sources.
 * Boxes must be numbered so that every edge leads from a lower to a higher number.
 */
export function rankBoxes(count: number, edges: readonly (readonly [number, number])[]): number[] {
  const leaving: number[][] = Array.from({ length: count }, () => []);
  const entering: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    leaving[from].push(to);
    entering[to].push(from);
  }
  const rank = new Array<number>(count).fill(0);
  for (let box = 0; box < count; box++) {
    for (const from of entering[box]) rank[box] = Math.max(rank[box], rank[from] + 1);
  }
  for (let box = count - 1; box >= 0; box--) {
    if (leaving[box].length <= entering[box].length) continue;
    rank[box] = leaving[box].reduce((least, to) => Math.min(least, rank[to] - 1), Infinity);
  }
  return withoutGaps(rank);
}

function withoutGaps(rank: readonly number[]): number[] {
  const used = [...new Set(rank)].sort((a, b) => a - b);
  const place = new Map(used.map((r, i) => [r, i]));
  return rank.map((r) => place.get(r) as number);
}
