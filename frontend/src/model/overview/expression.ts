/**
 * What is typed above the table of trials: text, or an expression over its columns.
 *
 *     mlp                              trials whose name or settings contain it
 *     lr > 1e-3 and findings = 0       and, or, not, brackets; = != < <= > >= and ~ (contains)
 *     "val acc" >= 0.9 or act = GELU   names and words with spaces stand in quotes
 */
import { isNothing, type Cell } from "./columns";

export type Lookup = (word: string) => Cell;

export interface Filter {
  readonly fits: (lookup: Lookup) => boolean;
}

export interface Problem {
  /** A sentence: what was seen, and what to type. */
  readonly problem: string;
}

const COMPARED = /^(<=|>=|!=|==|=|<|>|~)$/;
const TOKEN = /\s*(<=|>=|!=|==|[=<>~()]|"[^"]*"|'[^']*'|[^\s<>=!~()"']+)/y;

/** Whether it is meant as an expression and not as text to look for. */
export const isExpression = (typed: string): boolean => /[<>=~]/.test(typed);

/** `words` are the columns that there are. */
export function parseFilter(typed: string, words: readonly string[]): Filter | Problem {
  const tokens = tokensOf(typed);
  if (tokens === null) return { problem: `A quote in ${typed} has no end.` };
  const parser = new Parser(tokens, words);
  try {
    const fits = parser.whole();
    return { fits };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

function tokensOf(typed: string): string[] | null {
  const found: string[] = [];
  TOKEN.lastIndex = 0;
  let at = 0;
  while (at < typed.trimEnd().length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(typed);
    if (!match) return null;
    found.push(match[1]);
    at = TOKEN.lastIndex;
  }
  return found;
}

type Test = (lookup: Lookup) => boolean;

class Parser {
  #at = 0;

  constructor(private readonly tokens: readonly string[], private readonly words: readonly string[]) {}

  whole(): Test {
    const found = this.#either();
    const left = this.tokens[this.#at];
    if (left !== undefined) throw new Error(`Before ${left} an “and” or an “or” is missing.`);
    return found;
  }

  #either(): Test {
    const all = [this.#both()];
    while (this.#takes("or")) all.push(this.#both());
    return all.length === 1 ? all[0] : (lookup) => all.some((test) => test(lookup));
  }

  #both(): Test {
    const all = [this.#one()];
    while (this.#takes("and")) all.push(this.#one());
    return all.length === 1 ? all[0] : (lookup) => all.every((test) => test(lookup));
  }

  #one(): Test {
    if (this.#takes("not")) {
      const inner = this.#one();
      return (lookup) => !inner(lookup);
    }
    if (this.#takes("(")) {
      const inner = this.#either();
      if (!this.#takes(")")) throw new Error("A bracket has no end: type )");
      return inner;
    }
    return this.#comparison();
  }

  #comparison(): Test {
    const word = this.#next("the name of a column, as in lr > 1e-3");
    const name = plain(word);
    if (!this.words.includes(name)) throw new Error(`There is no column ${name}. ${near(name, this.words)}`);
    const sign = this.tokens[this.#at];
    if (sign === undefined || !COMPARED.test(sign)) {
      throw new Error(`After ${name} one of = != < <= > >= ~ is missing, as in ${name} > 1e-3`);
    }
    this.#at++;
    const wanted = plain(this.#next(`what ${name} is compared with, as in ${name} ${sign} 1`));
    return (lookup) => compared(lookup(name), sign, wanted);
  }

  #takes(word: string): boolean {
    if (this.tokens[this.#at]?.toLowerCase() !== word) return false;
    this.#at++;
    return true;
  }

  #next(wanted: string): string {
    const found = this.tokens[this.#at++];
    if (found === undefined) throw new Error(`Something is missing at the end: ${wanted}.`);
    return found;
  }
}

const plain = (token: string): string => (/^["']/.test(token) ? token.slice(1, -1) : token);

function near(name: string, words: readonly string[]): string {
  const alike = words.filter((word) => word.toLowerCase().includes(name.toLowerCase().slice(0, 3))).slice(0, 4);
  const named = alike.length ? alike : words.slice(0, 6);
  return `There are ${named.join(", ")}${alike.length ? "" : ", …"}.`;
}

/** What is not known fits nothing but `!=`. NaN is a value that can be asked for: loss = nan. */
function compared(cell: Cell, sign: string, wanted: string): boolean {
  if (/^nan$/i.test(wanted)) {
    const isNaNow = typeof cell === "number" && Number.isNaN(cell);
    return sign === "!=" ? !isNaNow : (sign === "=" || sign === "==") && isNaNow;
  }
  if (sign === "~") return cell !== null && String(cell).toLowerCase().includes(wanted.toLowerCase());
  const number = numberOf(wanted);
  const own = typeof cell === "number" ? cell : cell === null ? NaN : numberOf(cell);
  if (!Number.isNaN(number) && !Number.isNaN(own)) {
    if (sign === "=" || sign === "==") return own === number;
    if (sign === "!=") return own !== number;
    return sign === "<" ? own < number : sign === "<=" ? own <= number : sign === ">" ? own > number : own >= number;
  }
  const isSame = !isNothing(cell) && String(cell).toLowerCase() === wanted.toLowerCase();
  if (sign === "!=") return !isSame;
  return (sign === "=" || sign === "==") && isSame;
}

/** `1e-3`, `12 %`, `3.5MB`: as the table writes them. */
function numberOf(text: string): number {
  const match = /^(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(%|kb|mb|gb|tb|k|m)?$/i.exec(text.trim());
  if (!match) return NaN;
  const units: Readonly<Record<string, number>> = { "%": 0.01, k: 1e3, kb: 1e3, m: 1e6, mb: 1e6, gb: 1e9, tb: 1e12 };
  return Number(match[1]) * (match[2] ? units[match[2].toLowerCase()] : 1);
}

/** Text is looked for in names and settings. */
export function textFits(typed: string, haystack: string): boolean {
  return typed.toLowerCase().split(/\s+/).every((word) => haystack.toLowerCase().includes(word));
}
