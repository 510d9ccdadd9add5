/** Names of trials, and of single ranks of them: `baseline:rank-1` is what rank 1 has recorded of `baseline`. */

const OF_RANK = /^(.+):rank-(\d+)$/;

interface Known {
  readonly name: string;
  readonly ranks: readonly number[];
}

/** The trial that a name is about, and which rank of it; null is all of them. */
export function splitName(name: string, trials: readonly Known[]): { trial: string; rank: number | null } {
  const found = OF_RANK.exec(name);
  const isTrial = trials.some((trial) => trial.name === name);
  if (!found || isTrial) return { trial: name, rank: null };
  return { trial: found[1] as string, rank: Number(found[2]) };
}

export const nameOf = (trial: string, rank: number | null): string => (rank === null ? trial : `${trial}:rank-${rank}`);

/** What is known of the trial that a name is about, if there is such a trial and such a rank. */
export function summaryOf<T extends Known>(name: string, trials: readonly T[]): T | undefined {
  const { trial, rank } = splitName(name, trials);
  return trials.find((one) => one.name === trial && (rank === null || one.ranks.includes(rank)));
}

interface Gaps {
  readonly rows: number;
  gap(row: number): string;
}

/** How many tensors of a step have no whole, and why, the most frequent reason first. */
export function gapsOf(table: Gaps | null): { tensors: number; reasons: readonly string[] } {
  const times = new Map<string, number>();
  let tensors = 0;
  for (let row = 0; row < (table?.rows ?? 0); row++) {
    const why = table?.gap(row) ?? "";
    if (!why) continue;
    tensors++;
    times.set(why, (times.get(why) ?? 0) + 1);
  }
  const reasons = [...times].sort((a, b) => b[1] - a[1]).map(([why, n]) => `${n} × ${why}`);
  return { tensors, reasons };
}
