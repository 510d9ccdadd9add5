/** Colours of the page for canvases, looked up once per theme: asking the browser costs more than drawing. */
import { onThemeChange, readTheme, type Theme } from "../../draw/theme";

let theme: Theme | null = null;
const resolved = new Map<string, string>();
let listening = false;

/** Forgets when the theme changes; installed with the first question, before any plot asks to be repainted. */
function listen(): void {
  if (listening) return;
  listening = true;
  onThemeChange(() => {
    theme = null;
    resolved.clear();
  });
}

export function pageTheme(): Theme {
  listen();
  return (theme ??= readTheme());
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
