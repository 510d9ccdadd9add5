/** What the cache keeps of one answer, whether it is there or on its way. */
import type { RequestFailed } from "./client";
import type { Request } from "./questions";

/** Replaced, never changed: two equal references mean that nothing has happened. */
export interface Entry {
  readonly value: unknown;
  readonly problem: RequestFailed | null;
  /** The value is missing, or a newer one is on its way. */
  readonly pending: boolean;
}

export interface Slot {
  entry: Entry;
  bytes: number;
  used: number;
  stale: boolean;
  request: Request<unknown> | null;
  isEager: boolean; // prefetched, not looked at
  flight: Flight | null;
  hasWaited: boolean; // all connections were taken when it was wanted
  isDropped: boolean; // nobody looked any more when its turn came
}

/** What is on its way as one. */
export interface Flight {
  readonly keys: readonly string[];
  readonly isEager: boolean;
  readonly stop: AbortController;
}

export const NOTHING: Entry = { value: null, problem: null, pending: false };
