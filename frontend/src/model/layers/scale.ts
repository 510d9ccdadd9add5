/** Colours of layers × steps: what a number means, where it stands, and how it is written. */
import { divergingScale, linearScale, logScale, type HeatScale } from "../heat";
import { shortNumber } from "../numbers";
import { pointsText, ratioScale, ratioText } from "../ratio";
import { INFINITE, NAN, NOTHING, VALUE, type Cells, type Line, type Reference } from "./derive";

const LOOKED_AT = 40_000; // cells; of more, every n-th

export interface LayerScale extends HeatScale {
  /** Numbers, shares, or how they stand to a reference. */
  readonly what: "number" | "share" | "ratio" | "points";
}

export type StatisticScale = "log" | "linear" | "diverging";

/** `rows` are those that count: labels, losses and single numbers do not touch the scale. */
export function layerScale(
  cells: Cells, rows: readonly number[], reference: Reference, statistic: StatisticScale, isShare: boolean,
): LayerScale {
  if (reference !== "absolute") {
    return { ...ratioScale(isShare), what: isShare ? "points" : "ratio" };
  }
  if (isShare) return { ...linearScale(0, 1), what: "share" };
  const numbers = looked(cells, rows, statistic === "log");
  const at = (share: number): number => numbers[Math.floor(share * (numbers.length - 1))];
  if (numbers.length === 0) return { ...linearScale(0, 1), what: "number" };
  if (statistic === "log") {
    const [low, high] = [at(0.02), at(0.98)];
    const isNarrow = high / low < 2;
    return { ...(isNarrow ? logScale(low / 1.6, high * 1.6) : logScale(low, high)), what: "number" };
  }
  const reach = Math.max(Math.abs(at(0.02)), Math.abs(at(0.98)));
  if (statistic === "diverging") return { ...divergingScale(reach || 1), what: "number" };
  return { ...linearScale(Math.min(0, at(0.02)), at(0.98) || 1), what: "number" };
}

/** Sorted. */
function looked({ values, states, columns }: Cells, rows: readonly number[], isLog: boolean): Float32Array {
  const every = Math.max(1, Math.ceil((rows.length * columns) / LOOKED_AT));
  const found: number[] = [];
  let next = 0;
  for (const row of rows) {
    for (; next < columns; next += every) {
      const cell = row * columns + next;
      if (states[cell] === VALUE && (!isLog || values[cell] > 0)) found.push(values[cell]);
    }
    next -= columns;
  }
  return Float32Array.from(found).sort();
}

const URGENT = { [NAN]: 1e9, [INFINITE]: 1e8, [NOTHING]: 0.5 } as Readonly<Record<number, number>>;

/** How much a cell must be seen where several share a pixel: NaN, infinity, then what is furthest from the middle. */
export function urgencyOn(scale: LayerScale): (value: number, state: number) => number {
  const reach = scale.kind === "diverging" ? Math.abs : scale.place;
  return (value, state) => (state === VALUE ? 1 + reach(value) : URGENT[state] ?? 0);
}

/** Which of several rows is the worst at a column. */
export function worstAt(lines: readonly Line[], column: number, scale: LayerScale): number {
  const urgency = urgencyOn(scale);
  let [worst, most] = [-1, -1];
  lines.forEach(({ values, states }, place) => {
    const urgent = urgency(values[column], states[column]);
    if (urgent > most) [worst, most] = [place, urgent];
  });
  return worst;
}

/** The worst of several rows at each column; as it is, the number of a module is its own. */
export function worstLine(lines: readonly Line[], scale: LayerScale): Line {
  const columns = lines[0]?.values.length ?? 0;
  const worst: Line = { values: new Float32Array(columns), states: new Uint8Array(columns) };
  const most = new Float64Array(columns).fill(-1);
  const urgency = urgencyOn(scale);
  for (const { values, states } of lines) {
    for (let column = 0; column < columns; column++) {
      const urgent = urgency(values[column], states[column]);
      if (urgent <= most[column]) continue;
      most[column] = urgent;
      worst.values[column] = values[column];
      worst.states[column] = states[column];
    }
  }
  return worst;
}

/** `×0.37`, `+39 points`, `48.7 %`, `1.76e-7`. */
export function cellText(value: number, state: number, { what }: Pick<LayerScale, "what">): string {
  if (state === NAN) return "NaN";
  if (state === INFINITE) return "∞";
  if (state === NOTHING) return "·";
  if (state !== VALUE) return "–";
  if (what === "ratio") return ratioText(value);
  if (what === "points") return pointsText(value);
  return what === "share" ? `${shortNumber(Math.round(value * 1000) / 10)} %` : shortNumber(value);
}
