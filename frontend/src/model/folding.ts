/** Which modules are open: a set of addresses. The server says what boxes that makes (scene.ts). */
import type { GraphModel } from "./graph";

export type OpenGroups = ReadonlySet<string>;

/** In the place of all addresses. */
export const EVERYTHING = "*";

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
