/** The user's own arrangement where the recording cannot be written: it stays in this browser, also as a file. */
import { RequestFailed } from "../api/client";
import { askCatalog } from "../api/requests";
import type { Catalog, Layout } from "../api/types";
import { cache } from "./resource";

const CANNOT_BE_WRITTEN = 507;

const keyOf = (trial: string): string => {
  const catalog = cache.peek(askCatalog.key).value as Catalog | null;
  return `endoscope-layout ${catalog?.root ?? ""} ${trial}`;
};

export const cannotBeWritten = (error: unknown): boolean =>
  error instanceof RequestFailed && error.status === CANNOT_BE_WRITTEN;

export function keepHere(trial: string, layout: Layout): boolean {
  try {
    localStorage.setItem(keyOf(trial), JSON.stringify(layout));
    return true;
  } catch {
    return false;
  }
}

const read = new Map<string, { readonly text: string; readonly layout: Layout }>();

/** The same object until it changes; null: nothing is kept here. */
export function keptHere(trial: string): Layout | null {
  try {
    const text = localStorage.getItem(keyOf(trial));
    if (text === null) return null;
    const known = read.get(trial);
    if (known?.text === text) return known.layout;
    const layout = JSON.parse(text) as Layout;
    read.set(trial, { text, layout });
    return layout;
  } catch {
    return null;
  }
}

/** As the file that belongs into the folder of the trial. */
export function saveAsFile(layout: Layout): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(layout)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "page.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
