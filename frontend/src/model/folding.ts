/** Which groups are open. A view keeps a set of open addresses; everything else is closed. */
import type { GraphModel } from "./graph";

export type OpenGroups = ReadonlySet<string>;

/** About what fits on a screen with readable labels. */
export const COMFORTABLE_BOXES = 28;

/**
 * What is open at first: groups are opened by depth, outermost first, as long as the number of boxes on the screen
 * stays comfortable. All groups of one depth and size are treated alike, because one open block among eleven closed
 * ones would look like a statement. Layers that hold nothing but their weights come last, and only if all others are
 * open: closed, they show what they return, which is what one looks for first.
 */
export function defaultOpen(model: GraphModel, comfortable = COMFORTABLE_BOXES): Set<string> {
  const open = new Set<string>();
  let boxes = model.groups[0].groups.length + model.groups[0].nodes.length;
  const tryOpen = (groups: readonly number[]): boolean => {
    const { groups: inner, nodes } = model.groups[groups[0]];
    const more = groups.length * (inner.length + nodes.length);
    if (boxes + more > comfortable) return false;
    boxes += more;
    for (const group of groups) open.add(model.groups[group].address);
    return true;
  };
  const layers: number[] = [];
  let allOpen = true;
  for (let level = [...model.groups[0].groups]; level.length > 0; ) {
    const next: number[] = [];
    layers.push(...level.filter((id) => isLayer(model, id)));
    for (const alike of bySize(model, level.filter((id) => !isLayer(model, id)))) {
      if (tryOpen(alike)) next.push(...alike.flatMap((id) => model.groups[id].groups));
      else allOpen = false;
    }
    level = next;
  }
  const contents = layers.reduce((sum, id) => sum + model.groups[id].nodes.length, 0);
  if (allOpen && boxes + contents <= comfortable) for (const id of layers) open.add(model.groups[id].address);
  return open;
}

/** A module like Linear: weights and what it returns. */
function isLayer(model: GraphModel, id: number): boolean {
  const { groups, nodes, face } = model.groups[id];
  const isStored = (node: number): boolean => ["parameter", "buffer"].includes(model.nodes[node].kind);
  return groups.length === 0 && nodes.every((node) => node === face || isStored(node));
}

function bySize(model: GraphModel, level: readonly number[]): number[][] {
  const found = new Map<string, number[]>();
  for (const id of level) {
    const { groups, nodes } = model.groups[id];
    const key = `${groups.length},${nodes.length}`;
    found.set(key, [...(found.get(key) ?? []), id]);
  }
  return [...found.values()].sort((a, b) => a.length - b.length);
}

export function openToDepth(model: GraphModel, depth: number): Set<string> {
  const open = new Set<string>();
  const visit = (id: number, left: number): void => {
    if (left === 0) return;
    for (const inner of model.groups[id].groups) {
      open.add(model.groups[inner].address);
      visit(inner, left - 1);
    }
  };
  visit(0, depth);
  return open;
}

export function openAll(model: GraphModel): Set<string> {
  return openToDepth(model, Infinity);
}

/** Addresses of the groups around a node, outermost first. */
export function groupsAround(model: GraphModel, node: number): string[] {
  const found: string[] = [];
  for (let id = model.nodes[node].group; id > 0; id = model.groups[id].parent) found.unshift(model.groups[id].address);
  return found;
}

/** Opens whatever hides a node. */
export function reveal(model: GraphModel, open: OpenGroups, node: number): Set<string> {
  return new Set([...open, ...groupsAround(model, node)]);
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
