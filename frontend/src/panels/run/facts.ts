/** Configuration, versions and the recorder's own report, as rows and numbers. */
import type { StepColumns, Trial } from "../../api/types";

export interface FactRow {
  readonly name: string;
  /** One per trial; null where a trial has no such fact. */
  readonly values: readonly (string | null)[];
  readonly differs: boolean;
}

/** Nested settings by their paths: `data.seed`. */
export function flatten(settings: Readonly<Record<string, unknown>>, prefix = ""): [string, string][] {
  return Object.entries(settings).flatMap(([name, value]): [string, string][] => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested && Object.keys(value).length > 0) {
      return flatten(value as Record<string, unknown>, `${prefix}${name}.`);
    }
    return [[prefix + name, typeof value === "string" ? value : JSON.stringify(value)]];
  });
}

/** One row per fact, one column per trial; rows that differ come first. */
export function factRows(facts: readonly (readonly (readonly [string, string])[])[]): FactRow[] {
  const maps = facts.map((list) => new Map(list));
  const names = [...new Set(maps.flatMap((map) => [...map.keys()]))];
  const rows = names.map((name) => {
    const values = maps.map((map) => map.get(name) ?? null);
    return { name, values, differs: values.some((value) => value !== values[0]) };
  });
  return [...rows.filter((row) => row.differs), ...rows.filter((row) => !row.differs)];
}

/** Under this name the recorder keeps its own report among the settings. */
const REPORT = "endoscope";

export const ownSettings = (trial: Trial): [string, string][] =>
  flatten(Object.fromEntries(Object.entries(trial.config).filter(([name]) => name !== REPORT)));

/** What the recorder said about itself; absent until the trial ends. */
export interface Report {
  readonly steps: Readonly<Record<string, { readonly seen: number; readonly recorded: number }>>;
  readonly recordingSeconds: number | null;
  readonly writerSeconds: number | null;
  readonly rawBytes: number | null;
  readonly budget: { readonly fraction: number; readonly share: number; readonly refused: number } | null;
  readonly failedWrites: number;
  readonly lastFailure: string;
}

/** A recording is only data: what is not as expected is left out. */
export function readReport(trial: Trial): Report | null {
  const report = record(trial.config[REPORT]);
  if (!report) return null;
  const budget = record(report.budget);
  const refused = Object.values(record(budget?.refused) ?? {}).reduce<number>((sum, n) => sum + (number(n) ?? 0), 0);
  const steps = Object.entries(record(report.steps) ?? {}).map(([type, counts]) => {
    const both = record(counts);
    return [type, { seen: number(both?.seen) ?? 0, recorded: number(both?.recorded) ?? 0 }] as const;
  });
  return {
    steps: Object.fromEntries(steps),
    recordingSeconds: number(report.recording_seconds),
    writerSeconds: number(report.writer_seconds),
    rawBytes: number(report.raw_bytes),
    budget: budget && { fraction: number(budget.fraction) ?? NaN, share: number(budget.share) ?? NaN, refused },
    failedWrites: number(report.failed_writes) ?? 0,
    lastFailure: typeof report.failed_writes_last === "string" ? report.failed_writes_last : "",
  };
}

const record = (value: unknown): Readonly<Record<string, unknown>> | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** Share of the training's time that recording took; null while nothing can be said. */
export function shareOfTime(trial: Trial): number | null {
  const { seconds, time } = trial.steps;
  const own = trial.config.endoscope as { recording_seconds?: unknown; budget?: { share?: unknown } } | undefined;
  const share = own?.budget?.share; // from durations of whole steps; where there is no budget, what our own clock says
  if (typeof share === "number") return share;
  const told = own?.recording_seconds;
  const spent = typeof told === "number" ? told : seconds.reduce((sum, each) => sum + (each || 0), 0);
  const last = Math.max(trial.updated, time[time.length - 1] ?? 0);
  const whole = last - trial.created;
  return seconds.length > 0 && spent < whole ? spent / whole : null;
}

/** What recording cost, from the recorded steps themselves. */
export interface Cost {
  readonly seconds: number;
  readonly median: number;
  readonly worst: number;
}

export function costOf(steps: StepColumns): Cost | null {
  const spent = steps.seconds.filter(Number.isFinite);
  if (spent.length === 0) return null;
  const seconds = spent.reduce((sum, value) => sum + value, 0);
  const sorted = [...spent].sort((a, b) => a - b);
  return {
    seconds,
    median: sorted[sorted.length >> 1],
    worst: sorted[sorted.length - 1],
  };
}

/** Steps that were recorded and are gone again, to save room: places that no ordinal holds. */
export function thinnedSteps(steps: StepColumns): number {
  const last = steps.ordinal.at(-1);
  return last === undefined ? 0 : last + 1 - steps.ordinal.length;
}

/** Why steps were recorded, the most frequent reason first. */
export function reasonCounts(steps: StepColumns, reasons: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const why of steps.why) counts.set(reasons[why] ?? "", (counts.get(reasons[why] ?? "") ?? 0) + 1);
  return [...counts].filter(([reason]) => reason !== "").sort((a, b) => b[1] - a[1]);
}

/** `2.2 MB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [size, unit] = [bytes, 0];
  while (size >= 1000 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${Number(size.toPrecision(3))} ${units[unit]}`;
}
