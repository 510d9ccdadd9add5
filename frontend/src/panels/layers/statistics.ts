/** Which statistics layers × steps can show, and how they are called there. */
import type { StatisticScale } from "../../model/layers/scale";
import type { Trial } from "../../state/data";

export interface StatisticChoice {
  readonly value: string;
  readonly label: string;
  readonly scale: StatisticScale;
  readonly isShare: boolean;
  /** What it can be of; null: of everything. */
  readonly of: readonly string[] | null;
}

const FAVOURITES: Readonly<Record<string, string>> = {
  abs_mean: "size (mean |x|)", std: "spread (std)", abs_max: "largest |x|", norm: "norm", zeros: "share of zeros",
  nans: "share of NaN", infs: "share of infinities", neg_infs: "share of −infinities",
};

export function statisticsOf(trial: Trial | null): readonly StatisticChoice[] {
  if (!trial) return [];
  const recorded = trial.statistics.map(({ name, label, scale, isCount }): StatisticChoice => ({
    value: name, label: FAVOURITES[name] ?? label, scale: isCount ? (name === "count" ? "log" : "linear") : scale,
    isShare: isCount && name !== "count", of: null,
  }));
  const derived = trial.derived.map(({ name, label, scale, of }): StatisticChoice => ({
    value: name, label, scale, isShare: scale === "linear", of,
  }));
  const rank = ({ value }: StatisticChoice): number => {
    const place = Object.keys(FAVOURITES).indexOf(value);
    return place < 0 ? 99 : place;
  };
  const favourites = recorded.filter((each) => rank(each) < 5).sort((a, b) => rank(a) - rank(b));
  return [...favourites, ...derived, ...recorded.filter((each) => rank(each) >= 5)];
}

/** What is asked for, unless it cannot be of this kind of value. */
export function choiceFor(statistics: readonly StatisticChoice[], name: string, of: string): StatisticChoice | null {
  const fits = (each: StatisticChoice): boolean => each.of === null || each.of.includes(of.split(":")[0]);
  const possible = statistics.filter(fits);
  return possible.find(({ value }) => value === name) ?? possible[0] ?? null;
}
