/** What the page shows, as plain data. The address holds exactly this. */

import { UNIT_STATISTICS } from "../api/types";

/** In the order of the bar and of the keys 1, 2, …; all but the graph have a folder of this name in panels. */
export const TABS = [
  "overview", "layers", "graph", "compare", "metrics", "network", "notes", "views", "run", "findings",
] as const;
export type Tab = (typeof TABS)[number];

export const AGGREGATES = UNIT_STATISTICS;
/** Over the batch, per unit, when no sample is chosen. */
export type Aggregate = (typeof AGGREGATES)[number];

export type Pane = "a" | "b";

export const HEAT_MODES = ["absolute", "past", "blocks", "trial", "difference"] as const;
export type HeatMode = (typeof HEAT_MODES)[number];

/** What one pane looks at. Null: nobody chose, the best is taken. */
export interface Look {
  readonly trial: string | null;
  /** Null: any. */
  readonly type: string | null;
  /** Null: the newest. */
  readonly step: number | null;
  /** Which of the steps with this number, by its type, where there are several. Null: the newest of them. */
  readonly stepType: string | null;
  /** "value", "gradient:<loss>" or "update". Parameters' own values are "value", too. */
  readonly of: string | null;
  /** Null: the whole batch. */
  readonly sample: number | null;
  readonly aggregate: Aggregate;
  readonly node: string | null;
  readonly role: string | null;
  readonly pass: number | null;
}
export type Field = keyof Look;

export interface Page {
  readonly tab: Tab;
  /** Compared together; colours by position. Contains `look.trial`, the main one; empty: nobody chose. */
  readonly trials: readonly string[];
  /** What was wanted, pane A. */
  readonly look: Look;
  /** Pane B: only what differs from A; linked fields are absent. Empty: no comparison. */
  readonly other: Partial<Look>;
  /** Colours of the graph and of layers × steps; `blocks` and `trial` are of the latter, A − B of the former. */
  readonly heat: {
    readonly statistic: string;
    readonly mode: HeatMode;
    /** Ends of the colours; null: from the numbers themselves. */
    readonly range: readonly number[] | null;
  };
  readonly overview: {
    /** Text, or an expression over columns. */
    readonly filter: string;
    /** A column; with a minus before it, the largest first. Empty: the worst first. */
    readonly sort: string;
    /** Null: as it likes. */
    readonly columns: readonly string[] | null;
    readonly chart: "none" | "parallel" | "scatter";
    readonly x: string;
    readonly y: string;
    /** All findings are listed. */
    readonly all: boolean;
  };
  readonly layers: {
    /** "auto": what the selected layer is. */
    readonly rows: "auto" | "outputs" | "parameters";
    /** Where they happened, or all equally wide. */
    readonly columns: "true" | "equal";
    readonly order: "network" | "differs";
    readonly filter: string;
    /** Open modules; null: as it likes. */
    readonly open: readonly string[] | null;
    /** The trial that it is compared with; empty: nobody chose. */
    readonly other: string;
  };
  /** What a page of a trace shows beyond the node and the pass. */
  readonly trace: {
    /** All passes of a layer are one box. */
    readonly rolled: boolean;
    /** What is searched for, in the language of patterns. */
    readonly pattern: string;
    /** Ends of a path, as labels; empty: nobody chose. */
    readonly from: string;
    readonly to: string;
    readonly of: "value" | "gradient";
    /** Which of the tensors that the operation returned. */
    readonly output: number;
    /** Number of the branch whose operations stand out; -1: none. */
    readonly branch: number;
  };
  readonly edges: "selected" | "all";
  /** Open groups of the graph; null: as it likes. */
  readonly open: readonly string[] | null;
  /** Of the graph: x, y and scale of its upper left corner; null: everything is fitted into view. */
  readonly camera: readonly number[] | null;
  readonly series: {
    readonly statistic: string; readonly log: boolean; readonly histogram: boolean;
    /** Histograms over steps as outlines. */
    readonly ridges: boolean;
  };
  readonly metrics: {
    readonly names: readonly string[];
    readonly smoothing: number;
    readonly log: boolean;
    readonly x: "step" | "time";
    /** First and last place in view; null: all. */
    readonly range: readonly number[] | null;
    /** Parts of names. */
    readonly filter: string;
    /** A regular expression whose first group names the group of a metric; empty: what stands before the slash. */
    readonly group: string;
    /** Trials whose curves are not drawn. */
    readonly hidden: readonly string[];
    /** Whether the axis of values reaches to them. */
    readonly outliers: boolean;
  };
  /** Of bars of histograms. */
  readonly heights: "linear" | "log";
  readonly values: {
    readonly axes: readonly number[] | null;
    readonly index: readonly number[];
    readonly sort: string;
    readonly show: "map" | "numbers";
  };
  /** What stands beside the graph. */
  readonly side: "findings" | "outline";
  /** Chosen finding of the main trial. */
  readonly finding: string | null;
  /** Filter of notes. */
  readonly notes: string;
  /** Chosen custom view. */
  readonly view: string | null;
  /** The newest step is taken as soon as there is one: until somebody chooses a step. */
  readonly follow: boolean;
}

type Group = "heat" | "overview" | "layers" | "trace" | "series" | "metrics" | "values";
/** Anything that is no choice of what to look at; of a group only what changes. */
export type PagePart =
  Partial<Omit<Page, "look" | "other" | Group>> & { readonly [G in Group]?: Partial<Page[G]> };

/** Everything in the address: the page, and which choices are newer, as the older ones give way. */
export interface State {
  readonly page: Page;
  /** Fields of `look` that were chosen, newest first. */
  readonly recent: readonly Field[];
  /** Fields of `other`, newest first. */
  readonly recentOther: readonly Field[];
}

export const NO_LOOK: Look = {
  trial: null, type: null, step: null, stepType: null, of: null, sample: null, aggregate: "mean", node: null,
  role: null, pass: null,
};

export const FIRST_PAGE: Page = {
  tab: "overview",
  trials: [],
  look: NO_LOOK,
  other: {},
  heat: { statistic: "abs_mean", mode: "absolute", range: null },
  overview: { filter: "", sort: "", columns: null, chart: "none", x: "", y: "", all: false },
  layers: { rows: "auto", columns: "true", order: "network", filter: "", open: null, other: "" },
  trace: { rolled: false, pattern: "", from: "", to: "", of: "value", output: 0, branch: -1 },
  edges: "all",
  open: null,
  camera: null,
  series: { statistic: "std", log: false, histogram: true, ridges: false },
  metrics: {
    names: [], smoothing: 0, log: false, x: "step", range: null, filter: "", group: "", hidden: [], outliers: true,
  },
  heights: "linear",
  values: { axes: null, index: [], sort: "", show: "map" },
  side: "findings",
  finding: null,
  notes: "",
  view: null,
  follow: true,
};

export const FIRST_STATE: State = { page: FIRST_PAGE, recent: [], recentOther: [] };

/** What is really shown: impossible choices give way, the newest is kept. Null only where there is nothing at all. */
export interface Shown extends Look {
  /** N-th recorded step. */
  readonly ordinal: number | null;
  /** Fields that differ from what was wanted. */
  readonly relaxed: readonly Field[];
}

export const NOTHING_SHOWN: Shown = { ...NO_LOOK, ordinal: null, relaxed: [] };

/** Whether two panes are looked at. */
export const isComparing = (page: Page): boolean => Object.keys(page.other).length > 0;
