/** What looks wrong, as it is shown: one entry per cause, marks on nodes, stretches of time. */
import type { Finding, Findings } from "../api/types";
import { shortNumber, wholeNumber } from "./numbers";

export type Severity = Finding["severity"];
/** From harmless to harmful. */
export const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];

export const worse = (a: Severity, b: Severity): Severity =>
  SEVERITIES.indexOf(a) >= SEVERITIES.indexOf(b) ? a : b;

/** A title as the beginning of a sentence; one that begins with the name of a place keeps it as it is. */
export const sentenceOf = (title: string): string => title.slice(0, 1).toUpperCase() + title.slice(1);

/** A cause, and everything that probably follows from it. */
export interface Entry {
  readonly finding: Finding;
  readonly followers: readonly Finding[];
}

/** In the order of the findings; one whose cause is not among them stands for itself. */
export function entriesOf(findings: readonly Finding[]): Entry[] {
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  const roots = new Map<Finding, Finding[]>();
  for (const finding of findings) {
    const root = rootOf(finding, byId);
    if (!roots.has(root)) roots.set(root, []);
    if (root !== finding) roots.get(root)?.push(finding);
  }
  const place = new Map(findings.map((finding, i) => [finding, i]));
  return [...roots]
    .map(([finding, followers]) => ({ finding, followers }))
    .sort((a, b) => (place.get(a.finding) ?? 0) - (place.get(b.finding) ?? 0));
}

function rootOf(finding: Finding, byId: ReadonlyMap<string, Finding>): Finding {
  const way = [finding];
  for (;;) {
    const cause = byId.get(way[way.length - 1].follows);
    if (!cause) return way[way.length - 1];
    // Two that explain each other: the more important one speaks for both, whichever one comes from.
    const again = way.indexOf(cause);
    if (again >= 0) return [...byId.values()].find((each) => way.indexOf(each) >= again) as Finding;
    way.push(cause);
  }
}

export interface Count {
  readonly errors: number;
  readonly warnings: number;
}

/** How many entries deserve attention. */
export function countOf(entries: readonly Entry[]): Count {
  const of = (severity: Severity): number => entries.filter(({ finding }) => finding.severity === severity).length;
  return { errors: of("error"), warnings: of("warning") };
}

export function countWords({ errors, warnings }: Count): string {
  const words = [several(errors, "error"), several(warnings, "warning")].filter(Boolean);
  return words.join(", ");
}

const several = (count: number, word: string): string =>
  count === 0 ? "" : `${wholeNumber(count)} ${word}${count === 1 ? "" : "s"}`;

/** What a node is marked with. */
export interface NodeMark {
  readonly severity: Severity;
  /** It begins here; otherwise the same is seen here, too. */
  readonly begins: boolean;
  readonly words: readonly string[];
}
export type Marks = ReadonlyMap<string, NodeMark>;

export function marksOf(findings: readonly Finding[]): Marks {
  const marks = new Map<string, NodeMark>();
  const add = (node: string, finding: Finding, begins: boolean): void => {
    const words = begins ? finding.title : `also: ${finding.title}`;
    marks.set(node, merged(marks.get(node), { severity: finding.severity, begins, words: [words] }));
  };
  for (const finding of findings) {
    if (finding.node) add(finding.node, finding, true);
    for (const node of finding.also) if (node !== finding.node) add(node, finding, false);
  }
  return marks;
}

/** Two marks of one box: the worst is seen, all are told. */
export function merged(a: NodeMark | undefined, b: NodeMark): NodeMark {
  if (!a) return b;
  const words = [...new Set([...a.words, ...b.words])];
  return { severity: worse(a.severity, b.severity), begins: a.begins || b.begins, words };
}

/** A stretch of the training during which something was seen. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly severity: Severity;
  readonly words: string;
  readonly isChosen: boolean;
}

/** Of everything that deserves attention; the chosen one and the most harmful last, as they are drawn over others. */
export function spansOf(entries: readonly Entry[], chosen: string | null): Span[] {
  const isChosen = ({ finding, followers }: Entry): boolean =>
    chosen !== null && [finding, ...followers].some(({ id }) => id === chosen);
  return entries
    .filter((entry) => entry.finding.severity !== "info" || isChosen(entry))
    .map((entry) => ({ shown: entry.followers.find(({ id }) => id === chosen) ?? entry.finding, entry }))
    .map(({ shown, entry }) => ({
      from: shown.firstStep, to: shown.lastStep, severity: shown.severity, words: shown.title,
      isChosen: isChosen(entry),
    }))
    .sort((a, b) =>
      Number(a.isChosen) - Number(b.isChosen) || SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

/** When it was seen. What is still there at the last step has no end yet. */
export function timeWords({ firstStep, lastStep, types }: Finding, last: number | null): string {
  const from = wholeNumber(firstStep);
  const isLasting = last !== null && lastStep >= last && firstStep < lastStep;
  const steps = isLasting ? `since step ${from}` : firstStep === lastStep ? `at step ${from}`
    : `steps ${from} to ${wholeNumber(lastStep)}`;
  return types.length === 1 && types[0] ? `${steps} of type ${types[0]}` : steps;
}

/** How far beyond what is usual it is, in one short line; empty where that is not known. */
export function strengthWords({ strength, usual }: Finding): string {
  const beyond = strength !== null && strength > 1 ? `${shortNumber(strength)} times beyond` : "";
  if (usual === null) return beyond && `${beyond} the threshold`;
  const range = `${shortNumber(usual[0])} to ${shortNumber(usual[1])} in healthy trainings of this kind`;
  return beyond ? `${range}; ${beyond}` : range;
}

/** `model.py:41` of a path that may be long. */
export const sourceName = (source: string): string => source.split(/[/\\]/).pop() ?? source;

/** Text in pieces: every second one is a number. */
export const numbersIn = (text: string): string[] =>
  text.split(/((?<![\w.])[-−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?:\s?%)?(?!\w))/);

/** What is said when there is nothing to list. */
export function nothingWords({ checks, steps, lastStep, problem, silenced }: Findings): string {
  if (problem) return problem;
  if (steps === 0) return "Nothing has been recorded yet, so there is nothing to check.";
  const until = lastStep === null ? "" : ` up to step ${wholeNumber(lastStep)}`;
  const beside = silenced.some(({ findings }) => findings.length > 0) ? " beside what is silenced" : "";
  const looked = `${wholeNumber(steps)} recorded ${steps === 1 ? "step" : "steps"}`;
  return `${checks} checks, nothing found${beside} in ${looked}${until}.`;
}
