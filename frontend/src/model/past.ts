/** Numbers against their own past, as ratios: ÷ the median of the earlier recorded steps, from the fourth on. */
import { ABSENT, evenScale, VALUE, type HeatScale } from "./heat";
import type { HistoryLine } from "./history";
import { shortNumber } from "./numbers";

const NEEDED = 3;
/** From nothing to something, and back: beyond every ratio. */
export const BEYOND = 9;
const REACH = 1.5; // ×0.03 … ×30, always, so that pictures can be compared

/** Ratios are kept as decimal logarithms; of shares it is the difference. */
export function againstPast({ values, states }: HistoryLine, isShare: boolean): HistoryLine {
  const count = values.length;
  const found = { values: new Float64Array(count).fill(NaN), states: new Uint8Array(count) };
  const sorted: number[] = [];
  for (let i = 0; i < count; i++) {
    found.states[i] = states[i];
    if (states[i] !== VALUE) continue;
    if (sorted.length < NEEDED) found.states[i] = ABSENT;
    else found.values[i] = ratio(values[i], middleOf(sorted), isShare);
    insert(sorted, values[i]);
  }
  return found;
}

export function ratio(value: number, reference: number, isShare: boolean): number {
  if (isShare) return value - reference;
  const [own, other] = [Math.abs(value), Math.abs(reference)];
  if (own === other) return 0;
  if (own === 0) return -BEYOND;
  return other === 0 ? BEYOND : Math.log10(own / other);
}

function middleOf(sorted: readonly number[]): number {
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function insert(sorted: number[], value: number): void {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  sorted.splice(low, 0, value);
}

export const ratioScale = (isShare: boolean): HeatScale => evenScale(isShare ? 1 : REACH);

/** `-0.43` -> `×0.37`. */
export function ratioText(value: number, digits = 2): string {
  if (value <= -BEYOND) return "×0";
  if (value >= BEYOND) return "from 0";
  const text = shortNumber(10 ** value, digits);
  return `×${text}`;
}

export const pointsText = (value: number): string =>
  `${value >= 0 ? "+" : "−"}${shortNumber(Math.abs(value) * 100, 2)} points`;
