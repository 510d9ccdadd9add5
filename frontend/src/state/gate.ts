/**
 * Panels that are kept in the background hear nothing, ask for nothing and draw nothing. When they are shown again they
 * catch up: only what has changed meanwhile is drawn anew.
 *
 *     <Gate of a panel> ─ closed: hooks below it stop watching ─ open: they watch again, and look once
 */
import { createContext, useContext, useMemo, useRef, useSyncExternalStore } from "react";

export type Watch = (call: () => void) => () => void;

interface Door {
  open(): void;
  close(): void;
}

export class Gate {
  #isOpen: boolean;
  readonly #doors = new Set<Door>();

  constructor(isOpen = true) {
    this.#isOpen = isOpen;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  set(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    for (const door of [...this.#doors]) if (isOpen) door.open(); else door.close();
  }

  /** `door` is told when the gate opens and closes. */
  add(door: Door): () => void {
    this.#doors.add(door);
    return () => void this.#doors.delete(door);
  }

  /** Watches while the gate is open. Whoever watches looks again when it opens: something may have changed. */
  through(watch: Watch): Watch {
    return (call) => {
      let stop = this.#isOpen ? watch(call) : null;
      const close = (): void => {
        stop?.();
        stop = null;
      };
      const remove = this.add({
        close,
        open: () => {
          stop ??= watch(call);
          call();
        },
      });
      return () => {
        remove();
        close();
      };
    };
  }
}

export const GateContext = createContext(new Gate());
export const useGate = (): Gate => useContext(GateContext);

/** React's own hook, for panels that may be in the background. `watch` must stay the same while it means the same. */
export function useWatched<T>(watch: Watch, read: () => T): T {
  const gate = useGate();
  const through = useMemo(() => gate.through(watch), [gate, watch]);
  const last = useRef<{ readonly value: T } | null>(null);
  const value = useSyncExternalStore(through, () => (gate.isOpen || !last.current ? read() : last.current.value));
  last.current = { value };
  return value;
}
