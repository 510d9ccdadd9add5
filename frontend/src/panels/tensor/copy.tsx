/** Text that a click copies. */
import { useEffect, useState } from "react";

/** Also where the browser allows no clipboard: on plain http from another machine. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

interface Props {
  readonly text: string;
  /** What is read out: `Copy model.py:38`. */
  readonly label: string;
  /** What is shown; the text itself if left out. */
  readonly children?: string;
}

export function Copy({ text, label, children }: Props) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1200);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = (): void => void copyText(text).then(setDone);
  return (
    <button type="button" className="copy number" aria-label={label} title={`${text} (click to copy)`} onClick={copy}>
      {done ? "copied" : (children ?? text)}
    </button>
  );
}
