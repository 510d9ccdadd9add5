/** What a histogram is drawn from, and what its bars do not show, in words. Pure. */
import { outsideOf, QUANTILES, type Distribution } from "../../model/density";
import type { Histogram } from "../../model/histogram";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";

interface Facts {
  readonly histogram: Histogram;
  readonly dtype: string;
  readonly number: (statistic: string) => number;
}

export function distributionOf({ histogram, dtype, number }: Facts): Distribution {
  return {
    histogram, isWhole: isWholeType(dtype), min: number("min"), max: number("max"),
    quantiles: QUANTILES.map(([name, level]) => [level, number(name)] as const),
  };
}

export const isWholeType = (dtype: string): boolean => /^(u?int|bool|long|short)/.test(dtype);

/** Sentences below a histogram; `left`: elements that are not finite. */
export function leftOut(distribution: Distribution, range: readonly [number, number] | null, left: number): string[] {
  const { min = NaN, max = NaN, isWhole = false } = distribution;
  const words: string[] = [];
  if (left > 0) words.push(`${wholeNumber(left)} not finite: in no bar`);
  const { zeros, below, above } = outsideOf(distribution, range ?? [0, 0]);
  if (zeros === 1) return [...words, "all elements are exactly zero"];
  if (!range) return words;
  if (min === max && zeros === 0) return [...words, `all elements are ${shortNumber(min, 4)}`];
  if (zeros > 0) words.push(`${share(zeros)} are exactly zero and not in the bars`);
  if (below > LEAST) words.push(`${share(below)} below ${shortNumber(range[0])}, down to ${shortNumber(min)}`);
  if (above > LEAST) words.push(`${share(above)} above ${shortNumber(range[1])}, up to ${shortNumber(max)}`);
  if (isWhole && max > 3) words.push("whole numbers; from 4 on, neighbours that were counted together are drawn alike");
  return words;
}

const LEAST = 1e-9; // of rounding

/** Of a large tensor one element is next to nothing, but it is there. */
const share = (part: number): string => (part < 0.001 ? "less than 0.1 %" : percent(part));
