/** From one state to the next; pure. */
import {
  isComparing, type Field, type Look, type Page, type PagePart, type Pane, type Shown, type State,
} from "./look";

/** Newest first; what is null was taken back. */
function newest(recent: readonly Field[], look: Partial<Look>): Field[] {
  const fields = Object.keys(look) as Field[];
  const chosen = fields.filter((field) => look[field] !== null && look[field] !== undefined);
  return [...chosen, ...recent.filter((field) => !fields.includes(field))];
}

export function changeLook(state: State, choice: Partial<Look>, pane: Pane, shown: Shown): State {
  const { page } = state;
  // Another step is another number: of which type it is has to be said anew.
  const look = "step" in choice ? { ...choice, stepType: choice.stepType ?? null } : choice;
  if (pane === "b" && isComparing(page)) {
    const isOwn = (field: string): boolean => (field === "stepType" ? "step" : field) in page.other;
    const linked = Object.keys(look).filter((field) => !isOwn(field)) as Field[];
    // A linked field is chosen for both; one that differs is chosen for this pane alone.
    const isSaid = look.stepType !== null || page.look.stepType !== null || page.other.stepType !== undefined;
    const own = without(look, isSaid ? linked : [...linked, "stepType"]);
    const next = linked.length ? changeLook(state, only(look, linked), "a", shown) : state;
    return {
      ...next,
      page: { ...next.page, other: { ...next.page.other, ...own } },
      recentOther: newest(next.recentOther, own),
    };
  }
  const isNew = look.trial && !page.trials.includes(look.trial);
  const trials = isNew ? withTrial(page.trials, look.trial as string, shown) : page.trials;
  const follow = page.follow && (look.step === undefined || look.step === null);
  return {
    ...state,
    page: { ...page, trials, follow, look: { ...page.look, ...look } },
    recent: newest(state.recent, look),
  };
}

/** The new main trial takes the place of the old one; others that are compared stay. */
function withTrial(trials: readonly string[], name: string, shown: Shown): readonly string[] {
  const at = trials.indexOf(shown.trial ?? "");
  return at < 0 ? [name] : trials.map((trial, i) => (i === at ? name : trial));
}

export function mergePage(state: State, part: PagePart): State {
  const page: Record<string, unknown> = { ...state.page };
  for (const [name, value] of Object.entries(part)) {
    const before = page[name];
    const isGroup = isPlain(value) && isPlain(before);
    page[name] = isGroup ? { ...before, ...value } : value;
  }
  return { ...state, page: page as unknown as Page };
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A field that is given as undefined is linked again. */
export function compareWith(state: State, look: Partial<Look> | null): State {
  const other: Partial<Look> = look === null ? {} : { ...state.page.other, ...look };
  const own = (Object.keys(other) as Field[]).filter((field) => other[field] !== undefined);
  const page = { ...state.page, other: only(other, own) };
  return { ...state, page, recentOther: look === null ? [] : newest(state.recentOther, look) };
}

/** Only what differs changes places. `shown` is pane A: also a trial that nobody chose has to be named in pane B. */
export function swapped(state: State, shown: Shown): State {
  const { look, other, trials } = state.page;
  const fields = Object.keys(other) as Field[];
  const back = { ...only(look, fields), ...(other.trial ? { trial: look.trial ?? shown.trial } : {}) };
  const isNew = other.trial && !trials.includes(other.trial);
  const named = isNew ? withTrial(trials, other.trial as string, shown) : trials;
  return {
    page: { ...state.page, trials: named, look: { ...look, ...other } as Look, other: back },
    recent: newest(state.recent, only(other, state.recentOther)),
    recentOther: state.recent.filter((field) => fields.includes(field)),
  };
}

function only(look: Partial<Look>, fields: readonly Field[]): Partial<Look> {
  return Object.fromEntries(fields.filter((field) => field in look).map((field) => [field, look[field]]));
}
const without = (look: Partial<Look>, fields: readonly Field[]): Partial<Look> =>
  only(look, (Object.keys(look) as Field[]).filter((field) => !fields.includes(field)));
