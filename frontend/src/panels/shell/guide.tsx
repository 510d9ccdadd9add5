/** What a newcomer should know, in four steps, on the first visit; the help shows it again. */
import { useEffect, useState } from "react";
import { reach } from "../../state/keys";
import { Button } from "../../ui/parts";
import "./guide.css";

interface GuideStep {
  readonly title: string;
  readonly words: string;
  /** What it is about: outlined meanwhile, if it is on screen. */
  readonly target: string;
}

const STEPS: readonly GuideStep[] = [
  {
    title: "Four views, one selection",
    words: "Trial, layer, step and statistic stay while you change the view. The address holds all of it: a link shows "
      + "somebody else the same.",
    target: ".tabs",
  },
  {
    title: "When",
    words: "The curve is the loss, its ticks are recorded steps. Drag in it, or press [ and ].",
    target: ".scrubber",
  },
  {
    title: "Where",
    words: "The graph flows down. A box shows a number now and a strip of all steps; a click selects it, ▸ looks "
      + "inside. Arrow keys walk along the edges.",
    target: ".middle .stage",
  },
  {
    title: "What",
    words: "Beside it stands everything about the selected tensor. Marks say what looks wrong; n leads to the next "
      + "one, ? lists all keys.",
    target: ".side.right, .layers-side",
  },
];

const KEY = "endoscope-guide";

function wasSeen(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return true; // a browser that keeps nothing would show it again and again
  }
}

export function Guide() {
  const [at, setAt] = useState(() => (wasSeen() ? -1 : 0));
  useEffect(() => {
    reach.guide = () => setAt(0);
    return () => void delete reach.guide;
  }, []);
  const step = STEPS[at];
  useEffect(() => {
    const target = step && document.querySelector<HTMLElement>(step.target);
    target?.setAttribute("data-guide", "");
    return () => target?.removeAttribute("data-guide");
  }, [step]);
  const end = (): void => {
    setAt(-1);
    try {
      localStorage.setItem(KEY, "seen");
    } catch {
      // it is over for this visit
    }
  };
  if (!step) return null;
  const isLast = at === STEPS.length - 1;
  return (
    <aside className="guide" aria-label="Guide">
      <p><b>{step.title}</b> <span className="label">{at + 1} of {STEPS.length}</span></p>
      <p role="status">{step.words}</p>
      <p className="guide-buttons">
        {!isLast && <Button plain onClick={end}>skip</Button>}
        {at > 0 && <Button onClick={() => setAt(at - 1)}>back</Button>}
        <Button onClick={() => (isLast ? end() : setAt(at + 1))}>{isLast ? "done" : "next"}</Button>
      </p>
    </aside>
  );
}
