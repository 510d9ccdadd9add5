/** The title of the tab: where one is, and whether something was found since somebody last looked. */
import { useEffect, useRef, useState } from "react";
import { useOverviewFindings } from "../../state/findings";
import { useMainTrial, usePart } from "../../state/page";

export function useTitle(): void {
  const trial = useMainTrial();
  const tab = usePart((page) => page.tab);
  const found = useOverviewFindings();
  const count = found?.checked.some(Boolean) ? found.findings.length : null;
  const seen = useRef<number | null>(null); // when somebody last looked
  const [isLooked, setLooked] = useState(() => document.visibilityState === "visible" && document.hasFocus());
  useEffect(() => {
    const look = (): void => setLooked(document.visibilityState === "visible" && document.hasFocus());
    const events = ["visibilitychange", "focus", "blur"] as const;
    for (const event of events) (event === "visibilitychange" ? document : window).addEventListener(event, look);
    return () => {
      for (const event of events) (event === "visibilitychange" ? document : window).removeEventListener(event, look);
    };
  }, []);
  if (isLooked || seen.current === null) seen.current = count ?? seen.current;
  const fresh = count !== null && seen.current !== null ? Math.max(0, count - seen.current) : 0;
  useEffect(() => {
    document.title = titleOf(fresh, tab === "overview" ? null : trial);
  }, [fresh, trial, tab]);
}

/** `(2 new findings) leaky · Endoscope`. */
export function titleOf(fresh: number, trial: string | null): string {
  const news = fresh === 0 ? "" : `(${fresh} new ${fresh === 1 ? "finding" : "findings"}) `;
  return `${news}${trial === null ? "" : `${trial} · `}Endoscope`;
}
