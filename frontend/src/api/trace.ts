/** What the page asks about a trace. Nothing of it changes while it is served. */
import type { Table } from "@uwdata/flechette";
import { listAt, numberAt, numbers } from "./columns";
import { address, readFloats, type Answer, type Body, type Floats } from "./client";
import type { Request } from "./questions";
import { alone, arrow, asking, json } from "./requests";
import { readPicture, type PictureAnswer } from "./pictures";
import type { TraceCode, TraceFacts, TraceFound, TraceGraph, TraceOp } from "./types";

/** One tensor of a trace. */
export interface TraceTensor {
  readonly label: string;
  readonly output: number;
  readonly of: "value" | "gradient";
}

export interface TraceValue {
  /** A statistic. */
  readonly number: (name: string) => number;
  readonly histogram: { readonly first: number; readonly counts: ArrayLike<number> };
}

/** The numbers of a tensor, or of its beginning. */
export interface TraceNumbers extends Floats {
  /** Shape of the whole tensor. */
  readonly whole: readonly number[];
}

/** One number for each node of the graph, with its state as in model/heat.ts. */
export interface TraceHeat {
  readonly values: Float64Array;
  readonly states: Float64Array;
}

const at = (path: string, query: Record<string, string | number | null> = {}): string =>
  address(`trace${path && `/${path}`}`, query);
const ofTrace = <T>(url: string): Request<T> => json<T>(url, url);
const flag = (is: boolean): string | null => (is ? "1" : null);

export const askTrace: Request<TraceFacts> = ofTrace(at(""));
export const askTraceGraph = (rolled: boolean): Request<TraceGraph> =>
  ofTrace(at("graph", { rolled: flag(rolled) }));

/** `open` null: what a reader should see first. */
export function askTracePicture(rolled: boolean, open: readonly string[] | null): Request<PictureAnswer> {
  const url = at("picture", { rolled: flag(rolled), open: open && open.join(",") });
  return asking(url, url, readPicture);
}

export const askTraceOp = (label: string): Request<TraceOp> => ofTrace(at("op", { label }));
export const askTraceCode = (label: string): Request<TraceCode> => ofTrace(at("code", { label }));
export const askTraceFound = (pattern: string): Request<TraceFound> => alone(ofTrace(at("select", { pattern })));
export const askTracePath = (from: string, to: string): Request<TraceFound> => alone(ofTrace(at("path", { from, to })));

export function askTraceHeat(statistic: string, of: string): Request<TraceHeat> {
  const url = at("heat", { statistic, of });
  const read = (table: Table): TraceHeat => ({ values: numbers(table, "value"), states: numbers(table, "state") });
  return alone(arrow(url, url, read));
}

const query = ({ label, output, of }: TraceTensor) =>
  ({ label, output: output || null, of: of === "value" ? null : of });

export function askTraceValue(tensor: TraceTensor): Request<TraceValue> {
  const url = at("value", query(tensor));
  return arrow(url, url, (table) => ({
    number: (name) => numberAt(table, name, 0),
    histogram: { first: numberAt(table, "hist_first", 0), counts: listAt(table, "hist", 0, new Float64Array(0)) },
  }));
}

export function askTraceNumbers(tensor: TraceTensor): Request<TraceNumbers> {
  const url = at("tensor", query(tensor));
  return alone(asking(url, url, readNumbers));
}

function readNumbers(body: Body): Answer<TraceNumbers> {
  const { value, bytes } = readFloats(body);
  return { value: { ...value, whole: JSON.parse(body.header("X-Whole") ?? "[]") as number[] }, bytes };
}
