/** The result of a view for what is looked at now. A view may take seconds: one runs at a time, then the newest. */
import { useEffect, useRef, useState } from "react";
import { askView } from "../../api/requests";
import { useViewResult, type Loaded, type ViewResult, type ViewSelection } from "../../state/data";
import { viewsVersion } from "../../state/live";
import { cache } from "../../state/resource";
import { useWork } from "../tab_panel";

const PAUSE_MS = 120; // dragging the scrubber asks once it rests

/** The server keeps the last frames only; what was made before them has to be made again. */
const FRAMES_KEPT = 12;
const frames: string[] = [];

export interface Shown extends Loaded<ViewResult> {
  /** What is on screen was made for another selection. */
  readonly old: boolean;
}

export function useResult(name: string | null, selection: ViewSelection): Shown {
  const wanted = JSON.stringify([name, selection]);
  const [asked, setAsked] = useState(wanted);
  const [askedName, askedSelection] = JSON.parse(asked) as [string | null, ViewSelection];
  const result = useViewResult(askedName, askedSelection);
  const busy = result.pending;
  useEffect(() => {
    if (busy || asked === wanted) return;
    const isOther = askedName !== name; // another view is wanted at once
    const timer = setTimeout(() => setAsked(wanted), isOther ? 0 : PAUSE_MS);
    return () => clearTimeout(timer);
  }, [wanted, asked, busy, name, askedName]);
  useWork(asked !== wanted);
  useFreshFrame(result, askedName, askedSelection);
  // The picture of another view is no picture of this one.
  const lastName = useRef<string | null>(null);
  if (!busy) lastName.current = askedName;
  const value = lastName.current === name ? result.value : null;
  return { value, problem: result.problem, pending: busy || asked !== wanted, old: busy || asked !== wanted };
}

function useFreshFrame(result: Loaded<ViewResult>, name: string | null, selection: ViewSelection): void {
  const url = result.value?.kind === "frame" ? result.value.url : null;
  useEffect(() => {
    if (url === null || name === null || result.pending) return;
    const at = frames.indexOf(url);
    if (at < 0) frames.push(url);
    else if (at < frames.length - FRAMES_KEPT) {
      const { key } = askView(name, selection, viewsVersion());
      cache.invalidate((other) => other === key);
    }
  }, [url, result.pending, name, selection]);
}
