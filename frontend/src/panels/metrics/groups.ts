/** Which metrics stand below one heading. */

export interface Grouping {
  readonly groups: readonly { readonly title: string; readonly names: readonly string[] }[];
  /** Why the expression is not used, or not for all; empty: it is. */
  readonly problem: string;
}

/** `train/loss` and `train/accuracy` belong together. */
export const prefixOf = (name: string): string => (name.includes("/") ? name.slice(0, name.indexOf("/")) : "");

/**
 * By the first group of an expression; a metric that it does not match, by what stands before its first slash. Groups
 * are in the order of their first metric; what is in none comes first, as it has no heading.
 */
export function grouped(names: readonly string[], expression: string): Grouping {
  const { pattern, problem } = read(expression);
  const matches = names.map((name) => pattern?.exec(name)?.[1]);
  const titles = names.map((name, i) => matches[i] ?? prefixOf(name));
  const order = [...new Set(titles)].sort((a, b) => Number(a !== "") - Number(b !== ""));
  const groups = order.map((title) => ({ title, names: names.filter((_, i) => titles[i] === title) }));
  const unmatched = matches.filter((match) => match === undefined).length;
  return { groups, problem: problem || (pattern && unmatched > 0 ? unmatchedSentence(unmatched, names.length) : "") };
}

const OTHERWISE = "stands under what is before the / in its name";

function unmatchedSentence(unmatched: number, all: number): string {
  if (unmatched === all) return `No metric matches: each ${OTHERWISE}.`;
  return `${unmatched} of ${all} metrics ${unmatched === 1 ? "does" : "do"} not match: each ${OTHERWISE}.`;
}

function read(expression: string): { readonly pattern: RegExp | null; readonly problem: string } {
  if (expression === "") return { pattern: null, problem: "" };
  try {
    const pattern = new RegExp(expression);
    // Or nothing at all: this always matches, and so the number of groups can be counted.
    const groups = (new RegExp(`${expression}|`).exec("")?.length ?? 1) - 1;
    if (groups > 0) return { pattern, problem: "" };
    const wanted = "put the part that names the group in brackets, such as ^(\\w+)";
    return { pattern: null, problem: `“${expression}” has no group: ${wanted}.` };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /, "") : String(error);
    return { pattern: null, problem: `“${expression}” is no regular expression: ${reason}.` };
  }
}

/** So many need no filter, and no headings unless somebody asks for them or there are several prefixes. */
export const FEW = 8;

export const needHeadings = ({ groups }: Grouping, expression: string, count: number): boolean =>
  expression !== "" || count > FEW || groups.filter(({ title }) => title !== "").length > 1;
