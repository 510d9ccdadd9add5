/** What of A is subtracted from what of B, and how the two are called. Pure. */
import { compareNumbers, differenceOf, type Compared, type Difference, type RawValues } from "../../model/differences";
import { wholeNumber } from "../../model/numbers";
import type { Floats, SampleTable, Statistic, UnitTable } from "../../state/data";
import type { Aggregate, Shown } from "../../state/page";
import { ofText } from "../tensor/reasons";
import { rowOfSample } from "../tensor/summary";

export interface Side {
  readonly shown: Shown;
  /** Of the whole tensor; null if the step has none. */
  readonly number: ((statistic: string) => number) | null;
  readonly samples: SampleTable | null;
  readonly raw: Floats | null;
  readonly units: UnitTable | null;
}

const LEFT_OUT = ["neg_infs", "q25", "q75", "q01", "q99"];

/** Of the chosen sample where one is chosen, else of the whole tensor. */
function numberOf(side: Side, statistic: string): number | null {
  const row = rowOfSample(side.samples, side.shown.sample);
  const value = row >= 0 ? side.samples?.[statistic]?.[row] : side.number?.(statistic);
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** Rows in which nothing was ever counted (NaN, infinities) are left out. */
export function comparedNumbers(a: Side, b: Side, known: readonly Statistic[]): Compared[] {
  const names = known.map(({ name }) => name).filter((name) => !LEFT_OUT.includes(name));
  return names.map((name) => compareNumbers(name, numberOf(a, name), numberOf(b, name))).filter(
    (row) => (row.a !== null || row.b !== null) && !(["nans", "infs"].includes(row.name) && !row.a && !row.b),
  );
}

/** The part of raw values that the side looks at: one sample, or all that were kept. */
function rawOf({ raw, shown }: Side): RawValues | null {
  if (!raw || shown.sample === null || raw.samples === null) return raw;
  const at = raw.samples.indexOf(shown.sample);
  if (at < 0) return null;
  const shape = raw.shape.slice(1);
  const size = shape.reduce((x, y) => x * y, 1);
  return { data: raw.data.subarray(at * size, (at + 1) * size), shape, samples: null };
}

export interface ValuesDifference {
  readonly found: Difference | null;
  /** What was subtracted. */
  readonly title: string;
  /** Why there is nothing, or not everything. */
  readonly note: string;
}

export function valuesDifference(a: Side, b: Side, aggregate: Aggregate): ValuesDifference {
  const [left, right] = [rawOf(a), rawOf(b)];
  const raw = left && right ? differenceOf(left, right) : lacking(left, right);
  const isRaw = typeof raw !== "string";
  // Sample 3 of one step is another input than sample 3 of another step: there, the batch says more.
  const areOtherInputs = a.shown.step !== b.shown.step && isRaw && raw.samples !== null;
  if (isRaw && !areOtherInputs) return { found: raw, title: RAW, note: raw.note };
  const units = a.units && b.units ? differenceOf(unitsOf(a.units, aggregate), unitsOf(b.units, aggregate)) : null;
  if (units !== null && typeof units !== "string") {
    const title = `${aggregate.replace("_", " ")} of every unit, A − B`;
    return { found: units, title, note: isRaw ? `${OTHER_INPUTS}, so units over the batch are compared.` : raw };
  }
  if (isRaw) return { found: raw, title: RAW, note: `${OTHER_INPUTS}, even if their numbers are equal.` };
  return { found: null, title: "values, A − B", note: units ?? raw };
}

const RAW = "raw values, A − B";
const OTHER_INPUTS = "Samples of different steps are different inputs";

const unitsOf = (units: UnitTable, aggregate: Aggregate): RawValues => ({
  data: Float32Array.from(units[aggregate]), shape: units.shape, samples: null,
});

function lacking(a: RawValues | null, b: RawValues | null): string {
  const where = a ? "of B" : b ? "of A" : "of both sides";
  return `Raw values ${where} were not kept, so single elements cannot be subtracted: \`keep=…\` in \`endoscope.Run\`.`;
}

const PARTS: readonly (readonly [keyof Shown, (value: never) => string])[] = [
  ["trial", (value: string) => value],
  ["node", (value: string) => value],
  ["step", (value: number) => `step ${wholeNumber(value)}`],
  ["type", (value: string) => value || "(no type)"],
  ["of", (value: string) => ofText(value)],
  ["sample", (value: number | null) => (value === null ? "whole batch" : `sample ${value}`)],
  ["role", (value: string) => value || "no role"],
  ["pass", (value: number) => `pass ${value}`],
];

/** What tells the two apart: ["step 40", "step 2460"]. Empty if they are the same. */
export function sideNames(a: Shown, b: Shown): [string, string] {
  const different = PARTS.filter(([field]) => a[field] !== b[field]);
  const name = (shown: Shown): string =>
    different.map(([field, text]) => (shown[field] === null && field !== "sample" ? "" : text(shown[field] as never)))
      .filter(Boolean).join(", ");
  return [name(a), name(b)];
}
