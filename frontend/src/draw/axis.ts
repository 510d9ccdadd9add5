/** Ticks at round numbers. */

/** About `count` multiples of 1, 2 or 5 times a power of ten between the ends, both included if round. */
export function roundTicks(low: number, high: number, count: number): number[] {
  if (!(high > low) || !Number.isFinite(high - low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const miss = (step: number): number => Math.abs(Math.log(step / rough));
  const step = [1, 2, 5, 10].map((m) => m * power).reduce((best, s) => (miss(s) < miss(best) ? s : best));
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

/** Keeps labels that have room: places are middles in pixels, ascending. One that `must` stay pushes others away. */
export function withoutCrowding<T>(
  items: readonly T[], place: (item: T) => number, gap: number, must: (item: T) => boolean = () => false,
): T[] {
  const needed = items.filter(must).map(place);
  const kept: T[] = [];
  let last = -Infinity;
  for (const item of items) {
    const isCrowded = place(item) - last < gap || needed.some((at) => Math.abs(at - place(item)) < gap);
    if (isCrowded && !must(item)) continue;
    kept.push(item);
    last = place(item);
  }
  return kept;
}
