/** The frame that tabs with one panel share: a bar of controls, and below it something that scrolls. */
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { useGate } from "../state/gate";
import { beginWork } from "../state/settled";
import { Empty } from "../ui/parts";
import "./tab_panel.css";

interface Props {
  readonly label: string;
  readonly bar?: ReactNode;
  readonly children: ReactNode;
}

export function TabPanel({ label, bar, children }: Props) {
  return (
    <section className="tab-panel" aria-label={label}>
      <h2 className="visually-hidden">{label}</h2>
      {bar && <div className="tab-panel-bar">{bar}</div>}
      <div className="tab-panel-body">{children}</div>
    </section>
  );
}

const PATIENCE_MS = 150; // what is there sooner needs no announcement

/** Says that something is on its way, but only if it takes long enough to wonder. */
export function Waiting({ what }: { readonly what: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return late ? <Empty>Loading {what} …</Empty> : null;
}

/** Whether an element is on screen or near it: what is far away need not be loaded and drawn. */
export function useSeen<T extends Element>(): readonly [RefObject<T | null>, boolean] {
  const element = useRef<T>(null);
  const gate = useGate();
  const [seen, setSeen] = useState<boolean | null>(null);
  useEffect(() => {
    const look = (entries: readonly IntersectionObserverEntry[]): void => {
      // A tab in the background is not on screen, but keeps what it has drawn.
      if (gate.isOpen) setSeen(entries.some((entry) => entry.isIntersecting));
    };
    const observer = new IntersectionObserver(look, { rootMargin: "250px" });
    const begin = (): void => observer.observe(element.current as T);
    begin();
    // What it said in the background was not listened to, and it says nothing twice: it has to begin anew.
    const remove = gate.add({ open: begin, close: () => observer.disconnect() });
    return () => {
      remove();
      observer.disconnect();
    };
  }, [gate]);
  useWork(seen === null);
  return [element, seen === true];
}

/** While this is so, more is to be drawn than has been asked for: the page is not settled. Not in the background. */
export function useWork(isWorking: boolean): void {
  const gate = useGate();
  useLayoutEffect(() => {
    if (!isWorking) return;
    let finish: (() => void) | null = null;
    const begin = (): void => void (finish ??= beginWork());
    const end = (): void => {
      finish?.();
      finish = null;
    };
    if (gate.isOpen) begin();
    const remove = gate.add({ open: begin, close: end });
    return () => {
      remove();
      end();
    };
  }, [gate, isWorking]);
}
