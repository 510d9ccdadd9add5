/** Several answers at once, as for several trials. */
import { useRef } from "react";
import type { Entry, Request } from "../api/cache";
import { useWatched } from "./gate";
import { cache } from "./resource";

export interface LoadedAll<T> {
  /** In the order of the requests; null where there is none yet, or none at all. */
  readonly values: readonly (T | null)[];
  readonly pending: boolean;
  /** The first of them. */
  readonly problem: string | null;
}

export function useAll<T>(requests: readonly Request<T>[]): LoadedAll<T> {
  for (const request of requests) cache.want(request);
  const keys = requests.map((request) => request.key);
  const name = keys.join("\u0000");
  const kept = useRef<{ name: string; entries: readonly Entry[]; result: LoadedAll<T> } | null>(null);
  const watching = useRef<{ name: string; watch: (call: () => void) => () => void } | null>(null);
  if (watching.current?.name !== name) {
    const watch = (call: () => void): (() => void) => {
      const stops = keys.map((key) => cache.watch(key, call));
      for (const request of requests) cache.want(request); // it may have become old while nobody watched
      return () => stops.forEach((stop) => stop());
    };
    watching.current = { name, watch };
  }
  const read = (): LoadedAll<T> => {
    const entries = keys.map((key) => cache.peek(key));
    const before = kept.current;
    const isSame = before?.name === name && entries.every((entry, i) => entry === before.entries[i]);
    if (before && isSame) return before.result;
    const result: LoadedAll<T> = {
      values: entries.map((entry) => entry.value as T | null),
      pending: entries.some((entry) => entry.pending || (entry.value === null && !entry.problem)),
      problem: entries.find((entry) => entry.problem)?.problem?.message ?? null,
    };
    kept.current = { name, entries, result };
    return result;
  };
  return useWatched((watching.current as { watch: (call: () => void) => () => void }).watch, read);
}
