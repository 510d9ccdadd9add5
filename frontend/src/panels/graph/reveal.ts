/** Somebody wants a node to be seen: the search, another tab. The graph shows it when it is next on screen. */
import { useSyncExternalStore } from "react";

export interface RevealWish {
  readonly node: string;
  /** Grows with every wish: the same node may be wished for twice. */
  readonly count: number;
}

let wish: RevealWish = { node: "", count: 0 };
const watchers = new Set<() => void>();

export function wishToSee(node: string): void {
  wish = { node, count: wish.count + 1 };
  for (const call of [...watchers]) call();
}

let wantsFocus = false;

/** After the next picture the graph has the focus, so that arrow keys walk on from what was found. */
export function wishToWalk(): void {
  wantsFocus = true;
}

/** Whether somebody wished for that since the last time. */
export function takeFocusWish(): boolean {
  const was = wantsFocus;
  wantsFocus = false;
  return was;
}

const watch = (call: () => void): (() => void) => {
  watchers.add(call);
  return () => watchers.delete(call);
};

export const useRevealWish = (): RevealWish => useSyncExternalStore(watch, () => wish);
