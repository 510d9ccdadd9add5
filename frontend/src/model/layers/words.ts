/** What the colours of layers × steps mean now, in words. */
import type { Reference } from "./derive";

export interface Meaning {
  readonly label: string;
  readonly isShare: boolean;
  readonly reference: Reference;
  readonly other: string;
  readonly isDark: boolean;
}

export function meaningWords({ label, isShare, reference, other, isDark }: Meaning): string {
  if (reference === "absolute") {
    if (isShare) return `${isDark ? "The brighter" : "The darker"}, the larger the share: ${label}.`;
    return `Dark: small; bright: large, on one logarithmic scale for all rows: ${label}.`;
  }
  const than = {
    past: "than the layer's own past", blocks: "than the same layer in other blocks", trial: `than in ${other}`,
  }[reference];
  return `Blue: smaller ${than}; orange: larger.`;
}

export const referenceWords = (reference: Reference, other: string): string =>
  ({ absolute: "as it is", past: "vs. own past", blocks: "vs. other blocks", trial: `vs. ${other}` })[reference];
