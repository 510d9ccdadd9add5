/** One cache for the page, and the hook that reads from it. */
import { useRef } from "react";
import { Cache, type Request } from "../api/cache";
import { useWatched } from "./gate";

export const cache = new Cache();

/** Something from the server. The old value stays until the new one is there. */
export interface Loaded<T> {
  readonly value: T | null;
  /** The value is missing, or it is the one before. */
  readonly pending: boolean;
  /** A sentence: why there is none. */
  readonly problem: string | null;
}

const nothing = (): void => undefined;
const idle = (): (() => void) => nothing;

const watching = (request: Request<unknown>) => (call: () => void): (() => void) => {
  const stop = cache.watch(request.key, call);
  cache.want(request); // it may have become old while nobody watched
  return stop;
};

/** Null: nothing is wanted. Reads from memory while rendering, so what is there is shown in the same frame. */
export function useLoaded<T>(request: Request<T> | null): Loaded<T> {
  const key = request?.key ?? "";
  if (request) cache.want(request);
  const watchKey = useRef<{ key: string; watch: (call: () => void) => () => void }>({ key: "", watch: idle });
  if (watchKey.current.key !== key) {
    watchKey.current = { key, watch: request ? watching(request) : idle };
  }
  const entry = useWatched(watchKey.current.watch, () => cache.peek(key));
  const last = useRef<T | null>(null);
  const result = useRef<Loaded<T>>({ value: null, pending: false, problem: null });
  if (!request) last.current = null;
  else if (entry.value !== null) last.current = entry.value as T;
  else if (entry.problem) last.current = null;
  const problem = entry.problem?.message ?? null;
  const pending = request !== null && (entry.pending || entry.value === null) && problem === null;
  const before = result.current;
  if (before.value !== last.current || before.pending !== pending || before.problem !== problem) {
    result.current = { value: last.current, pending, problem };
  }
  return result.current;
}
