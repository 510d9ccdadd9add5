/** Colours for canvases, read once for all pictures and again when the scheme changes. */
import { useSyncExternalStore } from "react";
import { onThemeChange, pageTheme, type Theme } from "../../draw/theme";

let current: Theme | null = null;
let stop: (() => void) | null = null;
const listeners = new Set<() => void>();

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  stop ??= onThemeChange(() => {
    current = pageTheme();
    for (const listener of listeners) listener();
  });
  return () => {
    listeners.delete(changed);
    if (listeners.size > 0) return;
    stop?.();
    [stop, current] = [null, null]; // the scheme may change unseen while nobody listens
  };
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, () => (current ??= pageTheme()));
