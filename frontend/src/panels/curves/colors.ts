/** Colours of the page for canvases, looked up once per theme: asking the browser costs more than drawing. */
import { onThemeChange, pageTheme } from "../../draw/theme";

const resolved = new Map<string, string>();
let listening = false;

/** Forgets when the theme changes; installed with the first question, before any plot asks to be repainted. */
function listen(): void {
  if (listening) return;
  listening = true;
  onThemeChange(() => resolved.clear());
}

const TRIALS = 12;

/** To be called while nothing is on the page yet: then colours are looked up in no time. */
export function lookUpColors(): void {
  pageTheme();
  for (let trial = 1; trial <= TRIALS; trial++) resolvedColor(`var(--trial-${trial})`);
}

/** `var(--trial-1)` -> `rgb(36, 89, 214)`. */
export function resolvedColor(color: string): string {
  listen();
  let found = resolved.get(color);
  if (found === undefined) {
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = color;
    document.documentElement.append(probe);
    found = getComputedStyle(probe).color;
    probe.remove();
    resolved.set(color, found);
  }
  return found;
}
