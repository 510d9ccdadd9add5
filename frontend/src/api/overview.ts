/** The table of all trials, as the server sends it: one row per trial, the newest first. */
import type { Table } from "@uwdata/flechette";
import { metadata, numbers, texts } from "./columns";

export interface TrialMetric {
  readonly name: string;
  readonly last: number;
  /** Of the finite values; NaN if there are none. */
  readonly lowest: number;
  readonly highest: number;
}

export interface OverviewTrial {
  readonly name: string;
  /** "unread": nothing but its name and its configuration has been read yet. */
  readonly known: "unread" | "read" | "broken";
  readonly problem: string;
  readonly created: number;
  readonly updated: number;
  readonly live: boolean;
  readonly closed: boolean;
  /** Recorded. */
  readonly steps: number;
  readonly lastStep: number | null;
  /** Number of the newest step that anything is known of. */
  readonly trainedTo: number | null;
  /** Share of the training's time; NaN if unknown. */
  readonly cost: number;
  readonly bytes: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly metrics: readonly TrialMetric[];
  /** The metric of the curve. */
  readonly loss: string;
  readonly curveSteps: Float64Array;
  /** NaN where it is NaN or infinite. */
  readonly curveValues: Float32Array;
}

export interface OverviewTable {
  readonly trials: readonly OverviewTrial[];
  /** False: some have not been read yet. */
  readonly complete: boolean;
}

const KNOWN = ["unread", "read", "broken"] as const;
const orNull = (number: number): number | null => (number < 0 ? null : number);

export function overviewTable(table: Table): OverviewTable {
  const text = (name: string): string[] => texts(table, name);
  const number = (name: string): Float64Array => numbers(table, name);
  const [names, problems, configs, losses] = ["name", "problem", "config", "loss"].map(text);
  const [known, created, updated, live, closed] = ["known", "created", "updated", "live", "closed"].map(number);
  const [steps, lastStep, trainedTo, cost, bytes] = ["steps", "lastStep", "trainedTo", "cost", "bytes"].map(number);
  const list = <T>(name: string): ((row: number) => T) => {
    const column = table.getChild(name) as { at(row: number): unknown };
    return (row) => column.at(row) as T;
  };
  const metrics = list<readonly string[]>("metrics");
  const [last, lowest, highest] = ["last", "lowest", "highest"].map((name) => list<Float64Array>(name));
  const [curveSteps, curveValues] = [list<Float64Array>("curveSteps"), list<Float32Array>("curveValues")];
  const trials = names.map((name, row): OverviewTrial => ({
    name, problem: problems[row], loss: losses[row], config: configOf(configs[row]),
    known: KNOWN[known[row]] ?? "broken",
    created: created[row], updated: updated[row], live: live[row] > 0, closed: closed[row] > 0,
    steps: steps[row], lastStep: orNull(lastStep[row]), trainedTo: orNull(trainedTo[row]), cost: cost[row],
    bytes: bytes[row],
    metrics: Array.from(metrics(row), (metric, i) => ({
      name: metric, last: last(row)[i], lowest: lowest(row)[i], highest: highest(row)[i],
    })),
    curveSteps: curveSteps(row), curveValues: curveValues(row),
  }));
  return { trials, complete: metadata(table, "complete", true) };
}

function configOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
