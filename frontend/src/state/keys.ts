/** Every key of the page, in one table: what is done, and what the help says. */
import { cycle } from "./cycling";
import { TABS, act, type Tab } from "./page";
import { getState } from "./store";

export interface KeyEntry {
  readonly keys: readonly string[];
  readonly words: string;
  /** Absent: somebody else listens, as the graph while it has focus. */
  readonly run?: (key: string) => void;
}

/** Things on screen that keys reach; the parts put themselves in. */
export const reach: {
  trials?: () => void;
  search?: () => void;
  fit?: () => void;
  pass?: () => void;
  help?: () => void;
  guide?: () => void;
  finding?: (by: number) => void;
} = {};

/** 1 … 9, and 0 for the tenth. */
const TAB_KEYS = TABS.slice(0, 10).map((_, i) => String((i + 1) % 10));

const SEARCH: KeyEntry = { keys: ["/"], words: "search", run: () => reach.search?.() };
const FIT: KeyEntry = { keys: ["f"], words: "show the whole graph", run: () => reach.fit?.() };
const HELP: KeyEntry = { keys: ["?"], words: "this help", run: () => reach.help?.() };
const ZOOM: KeyEntry = { keys: ["+", "−"], words: "zoom (in the graph)" };
const ESCAPE: KeyEntry = { keys: ["Esc"], words: "close what is open" };

export const KEYS: readonly KeyEntry[] = [
  { keys: ["["], words: "step before", run: () => act.stepBy(-1, false) },
  { keys: ["]"], words: "step after", run: () => act.stepBy(1, false) },
  { keys: ["{"], words: "step before of the same type", run: () => act.stepBy(-1, true) },
  { keys: ["}"], words: "step after of the same type", run: () => act.stepBy(1, true) },
  { keys: ["g"], words: "next of value, gradients, update", run: () => cycle("of") },
  { keys: ["s"], words: "next sample", run: () => cycle("sample") },
  { keys: ["r"], words: "next role of the node", run: () => cycle("role") },
  { keys: ["p"], words: "next pass", run: () => cycle("pass") },
  { keys: ["y"], words: "next type of step", run: () => cycle("type") },
  { keys: ["b"], words: "next aggregate over the batch", run: () => cycle("aggregate") },
  { keys: ["t"], words: "choose trials", run: () => reach.trials?.() },
  { keys: ["c"], words: "compare: two places side by side, and back", run: () => toggleCompare() },
  SEARCH,
  FIT,
  { keys: ["n"], words: "show the next finding", run: () => reach.finding?.(1) },
  { keys: ["N"], words: "show the finding before", run: () => reach.finding?.(-1) },
  { keys: TAB_KEYS, words: TABS.slice(0, 10).join(", "), run: (key) => show(TABS[TAB_KEYS.indexOf(key)]) },
  HELP,
  { keys: ["←", "→", "↑", "↓"], words: "along the flow and across it (in the graph), step by step (in the scrubber)" },
  { keys: ["Enter"], words: "open or close a group (in the graph and the outline)" },
  ZOOM,
  ESCAPE,
];

/** Of the page of a trace, which has no steps. */
export const TRACE_KEYS: readonly KeyEntry[] = [
  SEARCH,
  FIT,
  { keys: ["p"], words: "next pass", run: () => reach.pass?.() },
  HELP,
  { keys: ["←", "→", "↑", "↓"], words: "along the flow and across it (in the graph)" },
  { keys: ["Enter"], words: "open or close a module (in the graph), search (in the search field)" },
  ZOOM,
  { keys: ["Esc"], words: "end the search, close what is open" },
];

let table = KEYS;

/** Which keys there are, in the stead of those of recordings. */
export const takeTraceKeys = (): void => void (table = TRACE_KEYS);

const show = (tab: Tab): void => act.page({ tab });

function toggleCompare(): void {
  act.page({ tab: getState().page.tab === "compare" ? "graph" : "compare" });
}

const TAKES_TEXT = "input:not([type=radio], [type=checkbox], [type=range]), textarea, [contenteditable]";

/** Keys work everywhere but where text is typed. */
export function listenToKeys(): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as Element | null;
    if (target?.matches?.(TAKES_TEXT) || target?.closest?.("dialog[open]")) return;
    // A list chooses by the first letter; one that has focus keeps its letters.
    if (target?.matches?.("select") && /^[a-z0-9]$/i.test(event.key)) return;
    const found = table.find((entry) => entry.run && entry.keys.includes(event.key));
    if (!found) return;
    found.run?.(event.key);
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
