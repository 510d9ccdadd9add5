/**
 * The state of the page as text for the address, and back.
 *
 *     v=1&tab=metrics&trial=fixed&step=400&of=gradient:total&b.step=0&order=so
 *
 * What is as in the beginning is left out. Text that somebody changed by hand never breaks the page: what makes no
 * sense is as in the beginning.
 */
import {
  AGGREGATES, FIRST_STATE, HEAT_MODES, NO_LOOK, TABS, type Field, type Look, type Page, type State,
} from "./look";

const VERSION = "1";

/** How one part travels: to text, and back; undefined for what makes no sense. */
interface Form<T> {
  readonly write: (value: T) => string;
  readonly read: (text: string) => T | undefined;
}

const text: Form<string> = { write: (value) => value, read: (value) => value };
const number: Form<number> = {
  write: String,
  read: (value) => (value !== "" && Number.isFinite(Number(value)) ? Number(value) : undefined),
};
const yes: Form<boolean> = { write: (value) => (value ? "1" : "0"), read: (value) => value === "1" };
const oneOf = <T extends string>(words: readonly T[]): Form<T> => ({
  write: (value) => value,
  read: (value) => words.find((word) => word === value),
});
/** An exclamation mark says that the next letter is meant as it is. */
const list = <T>(form: Form<T>): Form<readonly T[]> => ({
  write: (values) => {
    const words = values.map((value) => form.write(value).replace(/[!,-]/g, "!$&"));
    return words.length ? words.join(",") : "-";
  },
  read: (written) => {
    if (written === "-") return [];
    const words = [""];
    for (const [piece, letter] of written.matchAll(/!(.)|[^]/g)) {
      if (piece === ",") words.push("");
      else words[words.length - 1] += letter ?? piece;
    }
    return words.map((word) => form.read(word)).filter((item) => item !== undefined);
  },
});
const orNull = <T>(form: Form<T>): Form<T | null> => ({
  write: (value) => (value === null ? "" : form.write(value)),
  read: (value) => (value === "" ? null : form.read(value)),
});

/** A role or a type may be empty text, which is not the same as none. */
const maybeEmpty: Form<string | null> = {
  write: (value) => (value === null ? "" : value === "" ? "-" : value.replace(/^[-!]/, "!$&")),
  read: (value) => (value === "" ? null : value === "-" ? "" : value.replace(/^!/, "")),
};

const LOOK: { readonly [F in Field]: Form<Look[F]> } = {
  trial: orNull(text), type: maybeEmpty, step: orNull(number), stepType: maybeEmpty, of: orNull(text),
  sample: orNull(number),
  aggregate: oneOf(AGGREGATES), node: orNull(text), role: maybeEmpty, pass: orNull(number),
};

type Group = "heat" | "overview" | "layers" | "trace" | "series" | "metrics" | "values";
type Flat = Omit<Page, "look" | "other" | Group>;
const FLAT: { readonly [F in keyof Flat]: Form<Flat[F]> } = {
  tab: oneOf(TABS), trials: list(text), edges: oneOf(["selected", "all"]), open: orNull(list(text)),
  camera: orNull(list(number)), heights: oneOf(["linear", "log"]),
  side: oneOf(["findings", "outline"]), finding: orNull(text), notes: text, view: orNull(text),
  follow: yes,
};

type Nested = Pick<Page, Group>;
const NESTED: { readonly [G in keyof Nested]: { readonly [F in keyof Nested[G]]: Form<Nested[G][F]> } } = {
  heat: { statistic: text, mode: oneOf(HEAT_MODES), range: orNull(list(number)) },
  overview: {
    filter: text, sort: text, columns: orNull(list(text)), chart: oneOf(["none", "parallel", "scatter"]), x: text,
    y: text, all: yes,
  },
  layers: {
    rows: oneOf(["auto", "outputs", "parameters"]), columns: oneOf(["true", "equal"]),
    order: oneOf(["network", "differs"]), filter: text, open: orNull(list(text)), other: text,
  },
  trace: {
    rolled: yes, pattern: text, from: text, to: text, of: oneOf(["value", "gradient"]), output: number, branch: number,
  },
  series: { statistic: text, log: yes, histogram: yes, ridges: yes },
  metrics: {
    names: list(text), smoothing: number, log: yes, x: oneOf(["step", "time"]), range: orNull(list(number)),
    filter: text, group: text, hidden: list(text), outliers: yes,
  },
  values: { axes: orNull(list(number)), index: list(number), sort: text, show: oneOf(["map", "numbers"]) },
};

/** One letter per field, for the order of choices. */
const LETTERS: Readonly<Record<Field, string>> = {
  trial: "t", type: "y", step: "s", stepType: "k", of: "o", sample: "i", aggregate: "a", node: "n", role: "r",
  pass: "p",
};
const FIELDS = Object.keys(LETTERS) as Field[];

export function encode(state: State): string {
  const words = new URLSearchParams();
  const first = FIRST_STATE.page;
  // Who names a step stays there.
  put(words, "", FLAT, state.page, { ...first, follow: state.page.look.step === null });
  put(words, "", LOOK, state.page.look, NO_LOOK);
  for (const group of Object.keys(NESTED) as (keyof Nested)[]) {
    put(words, `${group}.`, NESTED[group] as Forms, state.page[group], first[group]);
  }
  for (const field of FIELDS.filter((name) => name in state.page.other)) {
    words.set(`b.${field}`, (LOOK[field] as Form<unknown>).write(state.page.other[field]));
  }
  if (state.recent.length) words.set("order", letters(state.recent));
  if (state.recentOther.length) words.set("b.order", letters(state.recentOther));
  // Colons and slashes are allowed in an address; without this "gradient:total" would be hard to read.
  const written = words.toString().replace(/%3A/g, ":").replace(/%2F/g, "/").replace(/%2C/g, ",").replace(/%21/g, "!");
  return written ? `v=${VERSION}&${written}` : "";
}

export function decode(address: string): State {
  const words = new URLSearchParams(address);
  if (words.get("v") !== VERSION) return FIRST_STATE; // of another time: nothing can be relied upon
  const first = FIRST_STATE.page;
  const nested = Object.fromEntries(
    (Object.keys(NESTED) as (keyof Nested)[]).map((group) => [
      group, { ...first[group], ...get(words, `${group}.`, NESTED[group] as Forms) },
    ]),
  ) as unknown as Nested;
  const look = { ...NO_LOOK, ...get(words, "", LOOK as Forms) } as Look;
  const other = get(words, "b.", LOOK as Forms) as Partial<Look>;
  const follow = look.step === null;
  const page: Page = { ...first, follow, ...(get(words, "", FLAT as Forms) as Partial<Flat>), ...nested, look, other };
  return {
    page,
    recent: fields(words.get("order")).filter((field) => field === "aggregate" || look[field] !== null),
    recentOther: fields(words.get("b.order")).filter((field) => field in other),
  };
}

/** Only what an address names, as a link to a part of the page does. */
export function partsOf(address: string): { readonly page: Partial<Flat & Nested>; readonly look: Partial<Look> } {
  const words = new URLSearchParams(address);
  if (words.get("v") !== VERSION) return { page: {}, look: {} };
  const groups = (Object.keys(NESTED) as (keyof Nested)[]).map(
    (group) => [group, get(words, `${group}.`, NESTED[group] as Forms)] as const,
  );
  const nested = Object.fromEntries(groups.filter(([, found]) => Object.keys(found).length > 0));
  return { page: { ...get(words, "", FLAT as Forms), ...nested }, look: get(words, "", LOOK as Forms) };
}

type Forms = Readonly<Record<string, Form<unknown>>>;

function put<T extends object>(words: URLSearchParams, prefix: string, forms: object, values: T, first: T): void {
  for (const [name, form] of Object.entries(forms) as [keyof T & string, Form<unknown>][]) {
    const written = form.write(values[name]);
    if (written !== form.write(first[name])) words.set(prefix + name, written);
  }
}

function get(words: URLSearchParams, prefix: string, forms: Forms): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, form] of Object.entries(forms)) {
    const written = words.get(prefix + name);
    const value = written === null ? undefined : form.read(written);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

const letters = (list: readonly Field[]): string => list.map((field) => LETTERS[field]).join("");

function fields(written: string | null): Field[] {
  const found = [...(written ?? "")].map((letter) => FIELDS.find((field) => LETTERS[field] === letter));
  return [...new Set(found.filter((field) => field !== undefined))];
}
