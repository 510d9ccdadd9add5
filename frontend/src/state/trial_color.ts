/** Colours stay with their trials, whatever else is chosen: they follow from the order in which trials began. */
import type { Catalog } from "../api/types";
import { askCatalog } from "../api/requests";
import { cache } from "./resource";

const COLORS = 12;

let about: Catalog | null = null;
let places = new Map<string, number>();

/** As CSS. */
export function trialColor(name: string): string {
  const catalog = cache.peek(askCatalog.key).value as Catalog | null;
  if (catalog !== about) {
    about = catalog;
    const inOrder = [...(catalog?.trials ?? [])].sort((a, b) => a.created - b.created || (a.name < b.name ? -1 : 1));
    places = new Map(inOrder.map((trial, place) => [trial.name, place]));
  }
  return `var(--trial-${((places.get(name) ?? 0) % COLORS) + 1})`;
}
