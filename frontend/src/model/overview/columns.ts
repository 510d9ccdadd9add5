/** The columns of the table of trials: what each has, how it is sorted, written and called in an expression. */
import type { OverviewTrial } from "./trial";

export type Cell = number | string | null;

export interface Column {
  /** `name`, `loss`, `findings`, …, `config:lr`, `metric:accuracy`, `best:accuracy`. */
  readonly id: string;
  readonly label: string;
  /** How an expression calls it. */
  readonly word: string;
  readonly kind: "number" | "text" | "share" | "bytes" | "time";
  readonly about: string;
  readonly value: (trial: OverviewTrial) => Cell;
}

/** Nested settings by their paths: `data.seed`. Lists and empty objects are text. */
export function settingsOf(config: Readonly<Record<string, unknown>>, prefix = ""): [string, Cell][] {
  return Object.entries(config).flatMap(([name, value]): [string, Cell][] => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested && Object.keys(value).length) return settingsOf(value as Record<string, unknown>, `${prefix}${name}.`);
    const cell = typeof value === "number" || typeof value === "string" ? value : JSON.stringify(value ?? null);
    return [[prefix + name, cell]];
  });
}

const known = new WeakMap<object, ReadonlyMap<string, Cell>>();

export function settingOf(trial: OverviewTrial, name: string): Cell {
  let found = known.get(trial.config);
  if (!found) known.set(trial.config, (found = new Map(settingsOf(trial.config))));
  return found.get(name) ?? null;
}

function settingNames(trials: readonly OverviewTrial[]): string[] {
  const names = new Set(trials.flatMap(({ config }) => settingsOf(config).map(([name]) => name)));
  return [...names].filter((name) => name !== "tags");
}

/** What most trials have, of settings that are not the same in all. */
export interface Difference {
  readonly name: string;
  readonly usual: Cell;
}

export function differences(trials: readonly OverviewTrial[]): Difference[] {
  return settingNames(trials).flatMap((name) => {
    const counts = new Map<Cell, number>();
    for (const trial of trials) {
      const value = settingOf(trial, name);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    if (counts.size < 2) return [];
    const [usual] = [...counts].reduce((most, each) => (each[1] > most[1] ? each : most));
    return [{ name, usual }];
  });
}

/** Settings in which a trial is not as most are. */
export const ownSettings = (trial: OverviewTrial, all: readonly Difference[]): [string, Cell][] =>
  all.flatMap(({ name, usual }): [string, Cell][] => {
    const value = settingOf(trial, name);
    return value === usual ? [] : [[name, value]];
  });

/** A loss is best where it is least. */
export const isBetterLow = (metric: string): boolean =>
  /loss|err|perplex|ppl|nll|mse|mae|rmse|entropy|bpb|bpc|divergence|cost|wer|cer/i.test(metric);

export interface Counts {
  readonly errors: number;
  readonly warnings: number;
  readonly isChecked: boolean;
}

export const tagsOf = ({ config }: OverviewTrial): string[] => {
  const { tags } = config;
  return Array.isArray(tags) ? tags.map(String) : typeof tags === "string" ? [tags] : [];
};

/** All columns that these trials can have, in the order in which they are offered. */
export function columnsOf(trials: readonly OverviewTrial[], counts: (name: string) => Counts): readonly Column[] {
  const metrics = [...new Set(trials.flatMap((trial) => trial.metrics.map(({ name }) => name)))];
  const metric = (trial: OverviewTrial, name: string) => trial.metrics.find((each) => each.name === name);
  const finding = (trial: OverviewTrial): Counts => counts(trial.name);
  const settings = settingNames(trials);
  // Of a setting and a metric with one name, the plain word is the one that is a number; the setting, if both are.
  const isNumeric = (name: string): boolean => trials.every((trial) => typeof settingOf(trial, name) !== "string");
  const wordOf = (name: string, of: "config" | "metric"): string => {
    if (!settings.includes(name) || !metrics.includes(name)) return name;
    return isNumeric(name) === (of === "config") ? name : `${of}.${name}`;
  };
  return [
    column("name", "Trial", "name", "text", "The name of its folder.", (trial) => trial.name),
    column("curve", "Loss", "curve", "text", "All curves share one scale: steps to the right, the loss upwards.",
      () => null),
    column("findings", "Findings", "findings", "number", "Errors and warnings, without what follows from them.",
      (trial) => (finding(trial).isChecked ? finding(trial).errors + finding(trial).warnings : null)),
    column("errors", "Errors", "errors", "number", "Findings that are errors.",
      (trial) => (finding(trial).isChecked ? finding(trial).errors : null)),
    column("warnings", "Warnings", "warnings", "number", "Findings that are warnings.",
      (trial) => (finding(trial).isChecked ? finding(trial).warnings : null)),
    column("differs", "Differs in", "differs", "text", "Settings that are not what most of these trials have.",
      () => null),
    ...settings.map((name) => {
      const word = wordOf(name, "config");
      return column(`config:${name}`, word, word, "text", `The setting ${name}.`, (trial) => settingOf(trial, name));
    }),
    ...metrics.map((name) => {
      const word = wordOf(name, "metric");
      return column(`metric:${name}`, word, word, "number", `The last value of ${name}.`,
        (trial) => metric(trial, name)?.last ?? null);
    }),
    ...metrics.map((name) => {
      const isLow = isBetterLow(name);
      const words = `The ${isLow ? "lowest" : "highest"} value of ${name}.`;
      return column(`best:${name}`, `best ${name}`, `best.${name}`, "number", words,
        (trial) => (isLow ? metric(trial, name)?.lowest : metric(trial, name)?.highest) ?? null);
    }),
    column("steps", "Steps", "steps", "number", "Steps trained, and how many of them were recorded.",
      ({ trainedTo }) => (trainedTo === null ? null : trainedTo + 1)),
    column("recorded", "Recorded", "recorded", "number", "Recorded steps.", ({ steps }) => steps),
    column("cost", "Cost", "cost", "share", "Share of the training time that recording took.",
      ({ cost }) => (Number.isNaN(cost) ? null : cost)),
    column("size", "On disk", "size", "bytes", "Bytes of all files.",
      ({ bytes, known: is }) => (is === "read" ? bytes : null)),
    column("tags", "Tags", "tags", "text", "The setting tags.", (trial) => tagsOf(trial).join(" ") || null),
    column("begun", "Begun", "begun", "time", "When the training began.", ({ created }) => created || null),
  ];
}

function column(
  id: string, label: string, word: string, kind: Column["kind"], about: string, value: Column["value"],
): Column {
  return { id, label, word, kind, about, value };
}

/** What is shown if nobody chose: of many trials one column for each setting that differs, as these can be sorted. */
export function usualColumns(trials: readonly OverviewTrial[], loss: string): readonly string[] {
  const names = [...new Set(trials.flatMap((trial) => trial.metrics.map(({ name }) => name)))];
  const isTelling = (name: string): boolean => name !== loss && !/^(lr|learning_rate)$|time|seconds|grad/i.test(name);
  const others = names.filter(isTelling).slice(0, 2);
  const several = trials.length > 1;
  const isMany = trials.length > 20;
  const all = differences(trials).map(({ name }) => name);
  const ofMany = all.filter((name) => !/seed/i.test(name)).slice(0, 6);
  const settings = isMany ? ofMany : several ? [] : settingNames(trials).slice(0, 6);
  return [
    "name", "curve", "findings", ...(several && !isMany ? ["differs"] : []),
    ...settings.map((name) => `config:${name}`),
    ...(loss ? [`metric:${loss}`] : []), ...others.map((name) => `metric:${name}`),
    ...others.slice(0, 1).map((name) => `best:${name}`),
    "steps", "cost", "size", ...(trials.some((trial) => tagsOf(trial).length) ? ["tags"] : []), "begun",
  ];
}

/** Nothing comes last, whichever way it is sorted; NaN is worse than every number. */
export function compareCells(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

export const isNothing = (cell: Cell): boolean => cell === null || (typeof cell === "number" && Number.isNaN(cell));
