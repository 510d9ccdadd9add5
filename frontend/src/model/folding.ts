/** Which modules are open: a set of addresses. The server says what boxes that makes (scene.ts). */
import type { GraphModel } from "./graph";

export type OpenGroups = ReadonlySet<string>;

/** In the place of all addresses. */
export const EVERYTHING = "*";

/** Before the short name of a list that is too long for an address; the server keeps it (HTTP_API.md). */
const KEPT = "@";
const MOST_LETTERS = 1200; // of an address that a chat accepts

/** Whether it says itself which modules are open. */
export const isSpelledOut = (open: readonly string[]): boolean =>
  !open.includes(EVERYTHING) && !open[0]?.startsWith(KEPT);

export const isTooLong = (open: readonly string[]): boolean =>
  open.reduce((sum, address) => sum + address.length + 1, 0) > MOST_LETTERS;

export const keptAs = (name: string): readonly string[] => [KEPT + name];

/** Addresses of the groups around a node, outermost first. */
export function groupsAround(model: GraphModel, node: number): string[] {
  const found: string[] = [];
  for (let id = model.nodes[node].group; id > 0; id = model.groups[id].parent) found.unshift(model.groups[id].address);
  return found;
}

/** Closing a group also closes what is inside, so that opening it again starts tidy. */
export function toggle(model: GraphModel, open: OpenGroups, address: string): Set<string> {
  const next = new Set(open);
  if (!next.delete(address)) return next.add(address);
  const id = model.groups.findIndex((group) => group.address === address);
  const visit = (group: number): void => {
    for (const inner of model.groups[group].groups) {
      next.delete(model.groups[inner].address);
      visit(inner);
    }
  };
  if (id >= 0) visit(id);
  return next;
}
