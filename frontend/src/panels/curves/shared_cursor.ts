/** The place that the pointer or a key points at, the same in all plots that share it. */

export interface SharedCursor {
  readonly place: () => number | null;
  /** `by` is the plot that says so: it has drawn its own line already. */
  readonly point: (place: number | null, by: object) => void;
  /** Returns how to stop listening. */
  readonly listen: (heard: (by: object) => void) => () => void;
}

/** No state of React: while the pointer moves, the lines of dozens of plots move, and none of them is made anew. */
export function sharedCursor(): SharedCursor {
  const listeners = new Set<(by: object) => void>();
  let here: number | null = null;
  return {
    place: () => here,
    point: (place, by) => {
      if (place === here) return;
      here = place;
      for (const heard of listeners) heard(by);
    },
    listen: (heard) => {
      listeners.add(heard);
      return () => listeners.delete(heard);
    },
  };
}
