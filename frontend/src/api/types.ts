// Made from src/endoscope/server/wire.py by `python -m endoscope.server.typescript`. Do not edit.

export const LAYOUT_VERSION = 1;
export const SELECTION_VERSION = 1;
export const HISTOGRAM_BINS = 257;
export const ZERO_BIN = 128;
export const LOWEST_EXPONENT = -32;

/** One of several answers that travel together. */
export interface Part {
  /** What was asked, without /api/ */
  readonly address: string;
  readonly status: number;
  /** Without those that fill it up to a multiple of eight */
  readonly bytes: number;
  /** Names in small letters */
  readonly headers: Readonly<Record<string, string>>;
}

/** One trial in the list of all trials. */
export interface TrialSummary {
  /** Of its folder; addresses use it */
  readonly name: string;
  /** Unix seconds; 0 if that is lost */
  readonly created: number;
  /** When something was last added */
  readonly updated: number;
  /** Recorded steps */
  readonly steps: number;
  /** Number of the newest recorded step */
  readonly lastStep: number | null;
  /** Something was added a moment ago, and it has not ended */
  readonly live: boolean;
  /** It ended properly */
  readonly closed: boolean;
  /** False: nothing of it has been read yet, so steps and times are not known */
  readonly known: boolean;
  /** False: `problems` says why, and everything else here is empty */
  readonly readable: boolean;
  readonly problems: readonly string[];
  /** That can be looked at by themselves, as `NAME:rank-1`; empty for a trial of one process */
  readonly ranks: readonly number[];
}

/** All trials that are served. */
export interface Catalog {
  /** Of Endoscope */
  readonly version: string;
  /** The folder, as it was typed */
  readonly root: string;
  readonly trials: readonly TrialSummary[];
  /** A trace is served, and no trials: its name */
  readonly trace: string | null;
}

/** One statistic, as menus and labels show it. */
export interface Statistic {
  readonly name: string;
  readonly label: string;
  /** Of colours: for magnitudes, for shares, for both signs */
  readonly scale: "log" | "linear" | "diverging";
  /** Colours show its share of all elements */
  readonly isCount: boolean;
  /** It is also known of each sample */
  readonly ofSamples: boolean;
  /** It is also known of each unit over the batch */
  readonly ofUnits: boolean;
}

/** A statistic that is made of others, for layers × steps. */
export interface Derived {
  readonly name: string;
  readonly label: string;
  readonly scale: "log" | "linear" | "diverging";
  /** Value, gradient, update: what it can be of */
  readonly of: readonly string[];
}

/** All recorded steps of a trial, one list per fact, in the order in which they were recorded. */
export interface StepColumns {
  /** N-th recorded step of the trial, from 0; gaps where steps were thinned */
  readonly ordinal: readonly number[];
  readonly number: readonly number[];
  /** Place in `types` */
  readonly type: readonly number[];
  /** Place in `graphs`; -1: none was recorded */
  readonly graph: readonly number[];
  /** Unix seconds */
  readonly time: readonly number[];
  /** What recording it cost */
  readonly seconds: readonly number[];
  /** Place in `reasons` */
  readonly why: readonly number[];
  /** Whether raw values were kept */
  readonly raw: readonly boolean[];
  /** How many were recorded */
  readonly tensors: readonly number[];
}

/** One trial, without numbers of tensors. */
export interface Trial {
  readonly name: string;
  readonly created: number;
  readonly updated: number;
  readonly live: boolean;
  readonly closed: boolean;
  readonly config: Readonly<Record<string, unknown>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly types: readonly string[];
  readonly losses: readonly string[];
  /** Why steps were recorded */
  readonly reasons: readonly string[];
  /** That were recorded of whole tensors */
  readonly statistics: readonly Statistic[];
  /** Of layers × steps */
  readonly derived: readonly Derived[];
  readonly steps: StepColumns;
  /** Hashes */
  readonly graphs: readonly string[];
  /** Names */
  readonly metrics: readonly string[];
  readonly problems: readonly string[];
  readonly gaps: number;
  readonly notes: number;
  /** Different ones that were ever recorded */
  readonly tensors: number;
}

/** One recorded tensor of a graph. */
export interface GraphNode {
  readonly pass: number;
  readonly node: string;
  readonly role: string;
  /** Input, parameter, buffer, computed, target, loss, output */
  readonly kind: string;
  /** Address of the module it belongs to; empty outside of all modules */
  readonly module: string;
  /** Addresses of the modules that were running, outermost first */
  readonly modules: readonly string[] | null;
  /** File:line */
  readonly source: string;
  /** The operation that made it */
  readonly type: string | null;
  readonly shape: readonly number[] | null;
}

/** A dependency graph. */
export interface Graph {
  readonly hash: string;
  readonly nodes: readonly GraphNode[];
  /** From, to (places in `nodes`), arguments through which it is used */
  readonly edges: readonly (readonly [number, number, readonly string[]])[];
}

/** What is known about one step; in the schema of its table, under the key `step`. */
export interface StepFacts {
  readonly number: number;
  readonly ordinal: number;
  readonly type: string;
  readonly time: number;
  readonly why: string;
  readonly seconds: number;
  readonly graph: string;
  readonly passes: number;
  readonly rawSamples: readonly number[];
  /** Of all samples of the batch, or of none */
  readonly categories: readonly string[];
  readonly config: Readonly<Record<string, unknown>>;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Which tensors were recorded at which steps. Columns, one entry per tensor, whatever its shape was. */
export interface Tensors {
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly passes: readonly number[];
  readonly of: readonly string[];
  readonly kind: readonly string[];
  /** How many samples it has; 0: none. Of several shapes the largest */
  readonly batch: readonly number[];
  /** Different collections of tensors that steps have; places in the columns, ascending */
  readonly sets: readonly (readonly number[])[];
  /** The steps */
  readonly ordinals: readonly number[];
  /** For each of them, the place in `sets`; -1: it can no longer be read */
  readonly setOf: readonly number[];
}

/** Something the user wrote down. */
export interface Note {
  readonly step: number;
  readonly time: number;
  readonly text: string;
}

/** Something that could not be recorded, or can no longer be read. */
export interface Gap {
  /** -1 if it belongs to no single step */
  readonly step: number;
  readonly node: string;
  readonly of: string;
  readonly reason: string;
  readonly time: number;
}

/** A parameter that belongs to a module itself. */
export interface ModuleParameter {
  /** Of its node */
  readonly name: string;
  /** Null: not known before the first use */
  readonly shape: readonly number[] | null;
  readonly dtype: string;
  readonly trainable: boolean;
}

/** One module of what was watched. */
export interface Module {
  /** Empty for the whole model */
  readonly address: string;
  /** Its class */
  readonly type: string;
  /** Addresses */
  readonly children: readonly string[];
  /** Numbers in it, all modules inside included */
  readonly parameters: number;
  readonly trainable: number;
  readonly own: readonly ModuleParameter[];
  readonly settings: string;
}

/** The tree of modules; empty if nothing was watched. */
export interface Modules {
  readonly modules: readonly Module[];
}

/** How the user arranged the graph; kept in page.json in the folder of the trial. */
export interface Layout {
  readonly version: number;
  /** "n:" and a node, or "g:" and a module -> where it was put */
  readonly pins: Readonly<Record<string, readonly [number, number]>>;
  /** Node or address of a module -> what the user calls it */
  readonly renames: Readonly<Record<string, string>>;
  /** Prefixes of names that get a box of their own */
  readonly groups: readonly string[];
}

/** What stands before the numbers of a picture of the graph. */
export interface PictureHead {
  readonly boxes: number;
  readonly edges: number;
  readonly tensors: number;
  /** Numbers in all paths */
  readonly points: number;
  readonly width: number;
  readonly height: number;
  /** Addresses of open modules */
  readonly opened: readonly string[];
  /** Of modules with a box */
  readonly addresses: readonly string[];
  /** Per box */
  readonly labels: readonly string[];
  readonly details: readonly string[];
}

/** Something that the capture could not see. */
export interface TraceNotice {
  readonly kind: string;
  readonly text: string;
  /** File:line in function; empty if it has no place */
  readonly source: string;
}

/** Layers that run again on what they made before. */
export interface TraceLoop {
  readonly passes: number;
  /** Loops around it */
  readonly depth: number;
  readonly source: string;
  readonly layers: readonly string[];
}

/** A test that a tensor answered, and what ran because of it. */
export interface TraceDecision {
  /** If, while, assert, … */
  readonly kind: string;
  /** Of the test in the source */
  readonly text: string;
  /** File:line */
  readonly source: string;
  /** Why the test could not be found; empty if it was */
  readonly unknown: string;
  /** What the tensor said */
  readonly value: string;
  /** That ran */
  readonly branch: string;
  /** This value alone chose the branch */
  readonly settled: boolean;
  /** The n-th time that this was asked */
  readonly nth: number;
  /** Labels of operations whose value was asked */
  readonly steering: readonly string[];
  /** Labels of operations of the branch */
  readonly ops: readonly string[];
}

/** A whole trace, without its graph. */
export interface TraceFacts {
  readonly name: string;
  readonly operations: number;
  /** Numbers in all parameters */
  readonly parameters: number;
  /** Of all values */
  readonly bytes: number;
  /** Of all operations whose count is known */
  readonly flops: number;
  /** Inside of torch functions */
  readonly seconds: number;
  readonly complete: boolean;
  readonly finished: boolean;
  readonly warnings: readonly TraceNotice[];
  readonly loops: readonly TraceLoop[];
  readonly decisions: readonly TraceDecision[];
  /** Of those that would make this too long */
  readonly decisionsLeftOut: number;
  /** Parameters and buffers that nobody reads */
  readonly unused: readonly string[];
  /** How often a layer runs at most */
  readonly passes: number;
  /** It was traced with gradients=True */
  readonly gradients: boolean;
}

/** A box that can be opened: a module, or one call of it. */
export interface TraceModule {
  readonly address: string;
  /** Its class; empty for what only holds others */
  readonly type: string;
  readonly label: string;
  /** Place of the box around it; -1 at the top */
  readonly parent: number;
}

/** Operations of a trace as columns, in the order of execution; without parameters that nobody reads. */
export interface TraceGraph {
  /** All passes of a layer are one node */
  readonly rolled: boolean;
  /** The label, or rolled the layer */
  readonly node: readonly string[];
  /** With the pass */
  readonly label: readonly string[];
  readonly passNumber: readonly number[];
  readonly kind: readonly string[];
  /** Plain name of the function */
  readonly type: readonly string[];
  /** Null: it returned none, or several */
  readonly shape: readonly (readonly number[] | null)[];
  /** Place in `sources`; -1: none */
  readonly source: readonly number[];
  /** File:line */
  readonly sources: readonly string[];
  /** The innermost box, place in `modules`; -1: none */
  readonly module: readonly number[];
  /** Every box before those inside of it */
  readonly modules: readonly TraceModule[];
  /** From, to, from, to, … */
  readonly edges: readonly number[];
}

/** One node of a `TraceGraph`, for colours. */
export interface TraceHeatRow {
  readonly value: number;
  /** Uint8: 0 no value, 1 a number, 2 some element is NaN, 3 some element is infinite */
  readonly state: number;
}

/** A tensor that an operation returned. */
export interface TraceOutput {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly device: string;
  readonly bytes: number;
  /** It requires a gradient */
  readonly learns: boolean;
}

/** One operation of a trace. */
export interface TraceOp {
  readonly label: string;
  readonly layer: string;
  readonly passNumber: number;
  readonly passes: number;
  readonly kind: string;
  readonly type: string;
  /** Where an input, output, parameter or buffer stands */
  readonly path: string;
  /** Its own name: add_ where the type says add; empty for what is no operation */
  readonly function: string;
  readonly inPlace: boolean;
  readonly gradFn: string;
  readonly arguments: readonly string[];
  readonly outputs: readonly TraceOutput[];
  readonly seconds: number;
  /** Null: the count is not known */
  readonly flops: number | null;
  readonly bytes: number;
  /** Calls around it, outermost first */
  readonly modules: readonly string[];
  /** Custom autograd functions and registered operators around it */
  readonly functions: readonly string[];
  /** Calls of modules that returned it */
  readonly left: readonly string[];
  /** File:line in function */
  readonly source: string;
  readonly parents: readonly string[];
  readonly children: readonly string[];
  readonly neighboursLeftOut: number;
  readonly edits: readonly string[];
  /** Every text under which it is found */
  readonly keys: readonly string[];
}

/** Lines of a file around an operation. */
export interface TraceCode {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  /** Number of the first line */
  readonly first: number;
  readonly lines: readonly string[];
  /** Why there are none, or why they may be others; empty if all is well */
  readonly problem: string;
}

/** Operations that were asked for. */
export interface TraceFound {
  readonly labels: readonly string[];
  /** How many there are, or why there are none */
  readonly sentence: string;
}

/** One tensor of a trace. Beside these, one column for each statistic. */
export interface TraceValueRow {
  readonly hist_first: number;
  readonly hist: readonly number[];
}

/** One thing that looks wrong. */
export interface Finding {
  /** Its name in the trial: stays the same while more is recorded */
  readonly id: string;
  readonly check: string;
  readonly severity: "info" | "warning" | "error";
  /** One sentence, which names the place */
  readonly title: string;
  /** A sentence with the numbers */
  readonly detail: string;
  /** Where it begins: a node, a metric, or empty */
  readonly node: string;
  readonly role: string;
  readonly of: string;
  readonly firstStep: number;
  readonly lastStep: number;
  /** Of the steps at which it was seen */
  readonly types: readonly string[];
  /** Of the batch of the first step, where known */
  readonly samples: readonly number[];
  /** What was measured; null if it is not finite */
  readonly value: number | null;
  readonly threshold: number | null;
  /** How many times beyond what healthy trainings show, or else beyond the threshold */
  readonly strength: number | null;
  /** Where 98 of 100 healthy tensors of this kind lie; null: not known */
  readonly usual: readonly [number, number] | null;
  /** Recorded steps at which it was seen */
  readonly steps: number;
  /** File:line */
  readonly source: string;
  readonly causes: readonly string[];
  readonly remedies: readonly string[];
  /** The view that shows it: what stands behind the page's address, from # on */
  readonly link: string;
  /** The finding that probably explains it, by its id; empty if none does */
  readonly follows: string;
  /** Other nodes with the same symptom */
  readonly also: readonly string[];
}

/** The same finding in one trial or in many. */
export interface OverviewFinding {
  /** As it is in `trial`, which has the worst */
  readonly finding: Finding;
  readonly trial: string;
  /** All that have it, as places in `OverviewFindings.trials` */
  readonly trials: readonly number[];
  /** Findings of `trial` that it probably explains */
  readonly followers: number;
}

/** What looks wrong in all trials. The lists have one entry for each trial. */
export interface OverviewFindings {
  /** The worst first; without those that follow from others, and without notices */
  readonly findings: readonly OverviewFinding[];
  /** That were run */
  readonly checks: number;
  /** More is on its way */
  readonly checking: boolean;
  readonly trials: readonly string[];
  /** False: nothing is known yet */
  readonly checked: readonly boolean[];
  readonly errors: readonly number[];
  readonly warnings: readonly number[];
  readonly notices: readonly number[];
  /** Up to which step the findings hold */
  readonly lastStep: readonly (number | null)[];
  /** Why it could not be checked; empty where it could */
  readonly problems: readonly string[];
}

/** What nobody wants to hear of; kept in findings.json in the folder of the trial. */
export interface SilencedCheck {
  readonly check: string;
  /** Null: everywhere */
  readonly node: string | null;
  /** That are not shown because of it */
  readonly findings: readonly Finding[];
}

/** What looks wrong in a trial, the most important first. */
export interface Findings {
  /** False: the first result is still on its way */
  readonly checked: boolean;
  /** A newer result is on its way */
  readonly checking: boolean;
  /** Why it could not be checked */
  readonly problem: string | null;
  /** How many were run */
  readonly checks: number;
  /** Recorded steps that they looked at */
  readonly steps: number;
  readonly lastStep: number | null;
  readonly findings: readonly Finding[];
  readonly silenced: readonly SilencedCheck[];
}

/** What the page sends to silence a check at a node, or everywhere, or to take that back. */
export interface Silencing {
  readonly check: string;
  /** Null: everywhere */
  readonly node: string | null;
  readonly silenced: boolean;
}

/** Every answer with a status of 400 or more. */
export interface Failure {
  /** A sentence for the user */
  readonly error: string;
  /** Name of the exception */
  readonly kind: string;
}

/** Event `trial`: it has grown, or is new. */
export interface TrialNews {
  readonly trial: string;
  readonly steps: number;
  /** Rows */
  readonly metrics: number;
  readonly lastStep: number | null;
  readonly closed: boolean;
}

/** Event `findings`: there are newer ones, or others are silenced. */
export interface FindingsNews {
  readonly trial: string;
}

/** Event `overview`: more is known of some trial than the table of all trials says. */
export interface OverviewNews {
  /** How many there are */
  readonly trials: number;
}

/** Event `catalog`: trials have come or gone. */
export interface CatalogNews {
  readonly trials: readonly string[];
}

/** Event `views`: the file with custom views was changed. */
export interface ViewsNews {
  readonly file: string;
}

/** One function of the file with custom views. */
export interface ViewEntry {
  readonly name: string;
  readonly title: string;
}

/** The custom views. */
export interface Views {
  /** Null if the server was started without any */
  readonly file: string | null;
  readonly views: readonly ViewEntry[];
  /** Why the file cannot be used: a sentence or a traceback */
  readonly problem: string | null;
}

/** What a custom view returned. */
export interface ViewResult {
  readonly kind: "image" | "frame" | "text" | "error";
  /** Of kind text; for kind error a traceback or a sentence */
  readonly text: string;
  /** Of kind image for <img>, of kind frame for a sandboxed <iframe>; otherwise empty */
  readonly url: string;
  /** How long the function took */
  readonly seconds: number;
}

/** What a custom view is told about the page, in the address as JSON; more fields are handed on as they are. */
export interface ViewSelection {
  readonly pass: number | null;
  readonly trials: readonly string[];
  readonly type: string | null;
  readonly step: number | null;
  readonly of: string | null;
  readonly sample: number | null;
  readonly node: string | null;
  readonly role: string | null;
}

/** One step of a series. Beside these, one column of float64 for each statistic that was asked for. */
export interface SeriesRow {
  readonly step: number;
  readonly type: string;
}

/** The histogram of one tensor at one step. */
export interface HistogramRow {
  readonly step: number;
  readonly type: string;
  /** Number of the first bin that is listed */
  readonly hist_first: number;
  /** Counts from there on */
  readonly hist: readonly number[];
}

/** One tensor over all steps; ordinals of the steps are in the schema, under the key `ordinals`. */
export interface HeatRow {
  readonly pass: number;
  readonly node: string;
  readonly role: string;
  readonly of: string;
  readonly kind: string;
  /** Float32, of fixed length: one for each step; NaN where a step has no such tensor */
  readonly values: readonly number[];
}

/** One tensor over all steps, for layers × steps; ordinals of the steps are in the schema, under `ordinals`. */
export interface LayersRow {
  readonly pass: number;
  readonly node: string;
  readonly role: string;
  readonly of: string;
  readonly kind: string;
  /** Float32, of fixed length: one for each step */
  readonly values: readonly number[];
  /** Uint8, the same: 0 absent, 1 a number, 2 some element is NaN, 3 some element is infinite */
  readonly states: readonly number[];
}

/** One trial in the table of all, the newest first. Metadata `complete`: whether all have been read. */
export interface OverviewRow {
  readonly name: string;
  /** 0 not read yet, 1 read, 2 cannot be read */
  readonly known: number;
  /** Why it cannot be read, or what is damaged */
  readonly problem: string;
  readonly created: number;
  readonly updated: number;
  readonly live: boolean;
  readonly closed: boolean;
  /** Recorded */
  readonly steps: number;
  /** Number of the newest recorded step; -1: none */
  readonly lastStep: number;
  /** Number of the newest step that anything is known of; -1: none */
  readonly trainedTo: number;
  /** Share of the training's time that recording took; NaN if unknown */
  readonly cost: number;
  /** On disk */
  readonly bytes: number;
  /** JSON, without the recorder's own report */
  readonly config: string;
  readonly metrics: readonly string[];
  /** One for each of `metrics`, as are these */
  readonly last: readonly number[];
  /** Of the finite values */
  readonly lowest: readonly number[];
  readonly highest: readonly number[];
  /** The metric of the curve */
  readonly loss: string;
  readonly curveSteps: readonly number[];
  /** NaN where the metric is NaN or infinite */
  readonly curveValues: readonly number[];
}

/** One tensor at one step. Beside these, one column for each of the trial's statistics. */
export interface StepRow {
  readonly pass: number;
  readonly node: string;
  readonly role: string;
  readonly of: string;
  readonly kind: string;
  readonly hist_first: number;
  readonly hist: readonly number[];
  readonly shape: readonly number[];
  readonly dtype: string;
  /** -1: it has no samples */
  readonly batch_dim: number;
  readonly module: string;
  readonly source: string;
  /** Whether raw values were kept */
  readonly raw: boolean;
}

/** One sample of one tensor at one step. Beside these, one column for each statistic of samples. */
export interface StepSampleRow {
  readonly pass: number;
  readonly node: string;
  readonly role: string;
  readonly of: string;
  readonly kind: string;
}

/** One sample of one tensor. Beside this, one column for each statistic of samples. */
export interface SampleRow {
  readonly sample: number;
}

/** One unit of one tensor, flattened; the shape of the units is in the schema, under the key `shape`. */
export interface UnitRow {
  readonly mean: number;
  readonly std: number;
  readonly abs_max: number;
}

/** One value of one metric. */
export interface MetricRow {
  readonly step: number;
  readonly time: number;
  readonly name: string;
  readonly value: number;
  readonly type: string;
}

export const STATISTICS: readonly Statistic[] = [
  { name: "count", label: "elements", scale: "linear", isCount: true, ofSamples: false, ofUnits: false },
  { name: "zeros", label: "zeros", scale: "linear", isCount: true, ofSamples: true, ofUnits: false },
  { name: "nans", label: "NaN", scale: "linear", isCount: true, ofSamples: true, ofUnits: false },
  { name: "infs", label: "infinities", scale: "linear", isCount: true, ofSamples: true, ofUnits: false },
  { name: "neg_infs", label: "−infinities", scale: "linear", isCount: true, ofSamples: false, ofUnits: false },
  { name: "mean", label: "mean", scale: "diverging", isCount: false, ofSamples: true, ofUnits: true },
  { name: "std", label: "std", scale: "log", isCount: false, ofSamples: true, ofUnits: true },
  { name: "abs_mean", label: "abs mean", scale: "log", isCount: false, ofSamples: true, ofUnits: false },
  { name: "min", label: "min", scale: "diverging", isCount: false, ofSamples: true, ofUnits: false },
  { name: "max", label: "max", scale: "diverging", isCount: false, ofSamples: true, ofUnits: false },
  { name: "abs_max", label: "abs max", scale: "log", isCount: false, ofSamples: true, ofUnits: true },
  { name: "norm", label: "norm", scale: "log", isCount: false, ofSamples: true, ofUnits: false },
  { name: "q01", label: "1st percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q05", label: "5th percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q25", label: "25th percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q50", label: "median", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q75", label: "75th percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q95", label: "95th percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
  { name: "q99", label: "99th percentile", scale: "diverging", isCount: false, ofSamples: false, ofUnits: false },
];
export const UNIT_STATISTICS = ["mean", "std", "abs_max"] as const;
