/** The numbers of one tensor at one step, with their spread over the batch. Pure. */
import type { SampleTable } from "../../api/tables";
import { percent, shortNumber, wholeNumber } from "../../model/numbers";
import { rankIn, spreadOf, zScore } from "../../model/spread";
import { statisticName } from "../../model/statistics";

export interface TileFacts {
  /** If several have one name. */
  readonly key?: string;
  readonly name: string;
  readonly value: number | null;
  readonly text?: string;
  readonly note: string;
  /** What the note means, on hover. */
  readonly hint?: string;
  /** It is an error by itself: NaN, infinity. */
  readonly broken?: boolean;
}

export interface SummaryInput {
  /** A statistic of the whole tensor. */
  readonly whole: (statistic: string) => number;
  /** Of all samples; null if there are none. */
  readonly samples: SampleTable | null;
  /** The chosen one; null: the whole batch. */
  readonly sample: number | null;
}

const SHOWN = ["mean", "std", "abs_mean", "abs_max", "zeros", "norm", "min", "max"] as const;

/** Position of a sample in the table; -1 if it is not there. */
export function rowOfSample(samples: SampleTable | null, sample: number | null): number {
  return samples && sample !== null ? samples.sample.indexOf(sample) : -1;
}

export function tilesOf(input: SummaryInput): TileFacts[] {
  const { whole, samples } = input;
  if (whole("count") === 1) return oneTile(whole);
  const row = rowOfSample(samples, input.sample);
  if (samples && row >= 0 && whole("count") === samples.sample.length) {
    return [{ ...plainTile("mean", input, row), name: "value" }]; // one number per sample
  }
  const tiles: TileFacts[] = SHOWN.map((name) =>
    name === "zeros" ? zerosTile(input, row) : plainTile(name, input, row),
  );
  for (const name of ["nans", "infs"]) {
    const each = samples?.[name];
    const count = row >= 0 && each ? each[row] : whole(name);
    if (!(count > 0)) continue;
    const hit = each && row < 0 ? countAbove(each) : 0;
    const note = hit ? `${wholeNumber(hit)} ${hit === 1 ? "sample" : "samples"}` : "";
    const hint = "left out of all other statistics";
    tiles.unshift({ name: statisticName(name), value: count, text: wholeNumber(count), note, hint, broken: true });
  }
  return tiles;
}

/** What a histogram shows, in words. */
export function quantileText(whole: SummaryInput["whole"]): string {
  const [low, middle, high] = [whole("q05"), whole("q50"), whole("q95")].map((value) => shortNumber(value, 2));
  return Number.isNaN(whole("q50")) ? "" : `median ${middle}, 90 % in ${low} … ${high}`;
}

/** Of a single number nothing else is worth saying. */
function oneTile(whole: SummaryInput["whole"]): TileFacts[] {
  const odd = whole("nans") > 0 ? NaN : whole("infs") > 0 ? (whole("neg_infs") > 0 ? -Infinity : Infinity) : null;
  return [{ name: "value", value: odd ?? whole("mean"), note: "", broken: odd !== null }];
}

function plainTile(name: string, { whole, samples }: SummaryInput, row: number): TileFacts {
  const spread = samples?.[name] ? spreadOf(samples[name]) : null;
  if (!spread || !samples) return { name: statisticName(name), value: known(whole(name)), note: "" };
  if (row >= 0) {
    const hint = `batch: ${shortNumber(spread.mean)} ± ${shortNumber(spread.std)}`;
    const note = `z ${scoreText(zScore(samples[name][row], spread.mean, spread.std))}`;
    return { name: statisticName(name), value: known(samples[name][row]), note, hint };
  }
  const extreme = name === "min" ? spread.lowAt : name === "max" || name === "abs_max" ? spread.highAt : -1;
  const note = extreme >= 0 ? `sample ${samples.sample[extreme]}` : `± ${shortNumber(spread.std, 2)}`;
  const hint = `per sample: ${shortNumber(spread.mean)} ± ${shortNumber(spread.std)}, ` +
    `${shortNumber(spread.low)} … ${shortNumber(spread.high)}`;
  return { name: statisticName(name), value: known(whole(name)), note, hint };
}

function zerosTile({ whole, samples }: SummaryInput, row: number): TileFacts {
  const count = whole("count");
  if (!samples || samples.sample.length === 0) {
    const part = whole("zeros") / count;
    const note = whole("zeros") ? wholeNumber(whole("zeros")) : "";
    return { name: "zeros", value: known(part), text: percent(part), note };
  }
  const each = count / samples.sample.length;
  const parts = samples.zeros.map((zeros) => zeros / each);
  const spread = spreadOf(parts);
  const part = row >= 0 ? parts[row] : whole("zeros") / count;
  const range = spread ? `${percent(spread.low)} … ${percent(spread.high)}` : "";
  const most = spread ? `≤ ${shortNumber(spread.high * 100, 2)} %` : ""; // there is little room
  const note = row >= 0 ? `all ${shortNumber((whole("zeros") / count) * 100, 2)} %` : most;
  const hint = `per sample: ${range}`;
  return { name: "zeros", value: known(part), text: percent(part), note: spread?.high === 0 ? "" : note, hint };
}

/** +0.3, −2.1. */
export const scoreText = (z: number): string => (z > 0 ? "+" : "") + shortNumber(z, 2);

const known = (value: number): number | null => (Number.isNaN(value) ? null : value);

const countAbove = (values: ArrayLike<number>): number => Array.from(values).filter((value) => value > 0).length;

const COUNTED = ["zeros", "nans", "infs"];

export interface SampleRow {
  readonly name: string;
  readonly value: number;
  readonly mean: number;
  readonly std: number;
  readonly z: number;
  /** Part of the batch below it, 0 … 1. */
  readonly rank: number;
}

/** Where a sample stands among the others, statistic by statistic; empty if it was not recorded. */
export function sampleRows(samples: SampleTable, sample: number, statistics: readonly string[]): SampleRow[] {
  const row = rowOfSample(samples, sample);
  if (row < 0) return [];
  return statistics.flatMap((name) => {
    const values = samples[name];
    const spread = values && spreadOf(values);
    if (!spread || Number.isNaN(values[row])) return [];
    if (COUNTED.includes(name) && spread.high === 0) return []; // nobody has any
    const value = values[row];
    return [{
      name, value, mean: spread.mean, std: spread.std, z: zScore(value, spread.mean, spread.std),
      rank: rankIn(values, value),
    }];
  });
}

/** Angles between the gradients of several losses on one tensor: as recorded beside the step. */
export function cosinesOf(
  extra: Readonly<Record<string, unknown>>, node: string, role: string, pass: number, of: string,
): TileFacts[] {
  const loss = of.slice("gradient:".length);
  if (!of.startsWith("gradient:") || !Array.isArray(extra.cosines)) return [];
  return (extra.cosines as unknown[]).flatMap((entry) => {
    if (!Array.isArray(entry) || entry.length < 6) return [];
    const [itsNode, itsRole, itsPass, a, b, value] = entry as [string, string, number, string, string, number];
    if (itsNode !== node || itsRole !== role || itsPass !== pass || (a !== loss && b !== loss)) return [];
    const other = a === loss ? b : a;
    const hint = `to the gradient of ${other}`;
    return [{ key: `cosine ${other}`, name: "cosine", value, note: `to ${other}`, hint }];
  });
}
