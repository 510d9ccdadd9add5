/** Statistics: those that are built in, and those that trials bring along because somebody registered them. Pure. */
import { STATISTICS, type Statistic } from "../api/types";

/** What nobody knows, such as a mistyped name in an address, is shown as it is. */
export const statisticNamed = (name: string, known: readonly Statistic[] = STATISTICS): Statistic =>
  known.find((one) => one.name === name) ?? {
    name, label: name.replaceAll("_", " "), scale: "log", isCount: false, ofSamples: false, ofUnits: false,
  };

export const statisticName = (name: string, known: readonly Statistic[] = STATISTICS): string =>
  statisticNamed(name, known).label;

/** Those of either trial. */
export const eitherOf = (a: readonly Statistic[], b: readonly Statistic[]): readonly Statistic[] =>
  [...a, ...b.filter(({ name }) => !a.some((one) => one.name === name))];

/** Counts last. */
export const SAMPLE_STATISTICS: readonly string[] = [false, true].flatMap((last) =>
  STATISTICS.filter(({ ofSamples, isCount }) => ofSamples && isCount === last).map(({ name }) => name),
);

/** What boxes can be coloured by, quantiles last: everything but the number of elements, which says nothing. */
export function heatChoices(known: readonly Statistic[]): { readonly value: string; readonly label: string }[] {
  const place = ({ name, isCount }: Statistic): number => (/^q\d\d$/.test(name) ? 2 : isCount ? 1 : 0);
  const shown = known.filter(({ name }) => name !== "count").sort((a, b) => place(a) - place(b));
  return shown.map((one) => ({ value: one.name, label: heatLabel(one) }));
}

/** Counts are shown as shares of all elements. */
export const heatLabel = ({ label, isCount }: Statistic): string => (isCount ? `share of ${label}` : label);
