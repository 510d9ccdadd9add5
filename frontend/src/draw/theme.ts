/** The page's colour roles, resolved for canvases, which do not understand CSS variables. */
import { KINDS, type Kind } from "../model/source";
import type { Rgb, Scheme } from "./color";

export interface Theme {
  readonly scheme: Scheme;
  readonly background: string;
  readonly panel: string;
  readonly raised: string;
  readonly line: string;
  readonly lineStrong: string;
  readonly ink: string;
  readonly inkSoft: string;
  readonly inkFaint: string;
  readonly accent: string;
  readonly onAccent: string;
  readonly error: string;
  readonly warning: string;
  readonly notice: string;
  /** Lines of what was not recorded. */
  readonly hatch: string;
  readonly sideA: string;
  readonly sideB: string;
  readonly kinds: Readonly<Record<Kind, string>>;
  readonly panelRgb: Rgb;
  readonly font: string;
  readonly numberFont: string;
}

export function readTheme(element: HTMLElement = document.documentElement): Theme {
  const probe = element.ownerDocument.createElement("span");
  probe.style.display = "none";
  element.append(probe);
  const style = getComputedStyle(probe);
  const color = (role: string): string => {
    probe.style.color = `var(--${role})`;
    return style.color;
  };
  const theme: Theme = {
    scheme: brightness(parseRgb(color("panel"))) > 128 ? "light" : "dark",
    background: color("background"),
    panel: color("panel"),
    raised: color("raised"),
    line: color("line"),
    lineStrong: color("line-strong"),
    ink: color("ink"),
    inkSoft: color("ink-soft"),
    inkFaint: color("ink-faint"),
    accent: color("accent"),
    onAccent: color("on-accent"),
    error: color("error"),
    warning: color("warning"),
    notice: color("notice"),
    hatch: color("hatch"),
    sideA: color("side-a"),
    sideB: color("side-b"),
    kinds: Object.fromEntries(KINDS.map((kind) => [kind, color(`kind-${kind}`)])) as Record<Kind, string>,
    panelRgb: parseRgb(color("panel")),
    font: style.getPropertyValue("--font").trim() || "sans-serif",
    numberFont: style.getPropertyValue("--font-number").trim() || "monospace",
  };
  probe.remove();
  return theme;
}

let known: Theme | null = null;
let isListening = false;

/** That of the page, read once per scheme: every colour that is read has the browser work out all styles anew. */
export function pageTheme(): Theme {
  if (!isListening) {
    isListening = true;
    onThemeChange(() => (known = null)); // whoever draws anew asks after this has been heard
  }
  if (known) return known;
  const theme = readTheme();
  const isStyled = getComputedStyle(document.documentElement).getPropertyValue("--font") !== "";
  return isStyled ? (known = theme) : theme; // without the style sheet, nothing that is read will stay true
}

export function parseRgb(text: string): Rgb {
  const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [];
  return [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0];
}

const brightness = ([r, g, b]: Rgb): number => 0.3 * r + 0.59 * g + 0.11 * b;

/** Calls back when the colours change: the system's scheme, or the page's own switch. Returns how to stop. */
export function onThemeChange(changed: () => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", changed);
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    media.removeEventListener("change", changed);
    observer.disconnect();
  };
}
