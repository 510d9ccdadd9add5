/** The tree of modules as rows: what is visible for a set of open modules and a search. */
import type { Module, ModuleParameter } from "../../api/types";
import { prefixes } from "../../model/names";

export interface ModuleRow {
  readonly key: string;
  /** Depth from 0. */
  readonly level: number;
  readonly label: string;
  readonly module: Module;
  /** The row is this parameter of the module; null: it is the module itself. */
  readonly parameter: ModuleParameter | null;
  /** Null: there is nothing inside. */
  readonly expanded: boolean | null;
  /** Key of the row around it; null at the top. */
  readonly parent: string | null;
  /** Its place among its neighbours, from 1, and how many there are. */
  readonly place: number;
  readonly of: number;
}

export class ModuleTree {
  readonly byAddress: ReadonlyMap<string, Module>;
  readonly roots: readonly Module[];

  constructor(readonly modules: readonly Module[]) {
    this.byAddress = new Map(modules.map((module) => [module.address, module]));
    const inside = new Set(modules.flatMap((module) => module.children));
    this.roots = modules.filter((module) => !inside.has(module.address));
  }

  /** Numbers in all modules together: what shares are shares of. */
  get parameters(): number {
    return this.roots.reduce((sum, module) => sum + module.parameters, 0);
  }

  get trainable(): number {
    return this.roots.reduce((sum, module) => sum + module.trainable, 0);
  }

  /** Outer modules first, as long as the rows fit on one screen; parameters of the innermost ones last. */
  openAtFirst(mostRows: number): Set<string> {
    const open = new Set<string>();
    const [waiting, leaves] = [[...this.roots], [] as Module[]];
    let rows = waiting.length;
    const openIfFits = (module: Module): boolean => {
      const inside = module.own.length + module.children.length;
      if (inside === 0 || rows + inside > mostRows) return false;
      rows += inside;
      open.add(module.address);
      return true;
    };
    for (const module of waiting) {
      if (module.children.length === 0) leaves.push(module);
      else if (openIfFits(module)) waiting.push(...this.children(module));
    }
    leaves.forEach(openIfFits);
    return open;
  }

  children(module: Module): Module[] {
    return module.children.flatMap((address) => this.byAddress.get(address) ?? []);
  }

  rows(open: ReadonlySet<string>): ModuleRow[] {
    const rows: ModuleRow[] = [];
    const visit = (module: Module, level: number, parent: Module | null, place: number, of: number): void => {
      const expanded = hasInside(module) ? open.has(module.address) : null;
      const label = moduleLabel(module, parent);
      rows.push({
        key: keyOf(module), level, label, module, parameter: null, expanded, parent: parent && keyOf(parent), place, of,
      });
      if (!expanded) return;
      const inner = this.children(module);
      const count = module.own.length + inner.length;
      module.own.forEach((parameter, i) => rows.push(parameterRow(module, parameter, level + 1, i + 1, count)));
      inner.forEach((child, i) => visit(child, level + 1, module, module.own.length + i + 1, count));
    };
    this.roots.forEach((module, i) => visit(module, 0, null, i + 1, this.roots.length));
    return rows;
  }

  /** Modules and parameters that a search finds, and all around them, opened. */
  found(query: string): ModuleRow[] {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
    const all = this.rows(new Set(this.byAddress.keys()));
    const byKey = new Map(all.map((row) => [row.key, row]));
    const kept = new Set<string>();
    for (const row of all) {
      if (!fits(searchText(row))) continue;
      let at: ModuleRow | undefined = row;
      for (; at && !kept.has(at.key); at = byKey.get(at.parent ?? "")) kept.add(at.key);
    }
    return all.filter((row) => kept.has(row.key));
  }
}

export const keyOf = (module: Module): string => `m:${module.address}`;

const hasInside = (module: Module): boolean => module.children.length + module.own.length > 0;

const searchText = ({ module, parameter }: ModuleRow): string =>
  parameter ? `${parameter.name} ${parameter.dtype}` : `${module.address} ${module.type}`;

/** The address within the module around it. */
function moduleLabel(module: Module, parent: Module | null): string {
  if (!module.address) return module.type;
  const outer = parent?.address ? `${parent.address}.` : "";
  return module.address.startsWith(outer) ? module.address.slice(outer.length) : module.address;
}

function parameterRow(
  module: Module, parameter: ModuleParameter, level: number, place: number, of: number,
): ModuleRow {
  const outer = module.address ? `${module.address}.` : "";
  const label = parameter.name.startsWith(outer) ? parameter.name.slice(outer.length) : parameter.name;
  const key = `p:${parameter.name}`;
  return { key, level, label, module, parameter, expanded: null, parent: keyOf(module), place, of };
}

/** Numbers in a parameter; null if its shape is not known yet. */
export function sizeOf(parameter: ModuleParameter): number | null {
  return parameter.shape && parameter.shape.reduce((product, length) => product * length, 1);
}

interface RecordedNode {
  readonly node: string;
  readonly module: string;
  readonly kind: string;
}

/**
 * Row -> the node of the graph that it leads to: its own, else the last one computed inside it, else any inside it;
 * null if nothing of it was recorded.
 */
export function nodeFinder(nodes: readonly RecordedNode[]): (row: ModuleRow) => string | null {
  const names = new Set(nodes.map(({ node }) => node));
  const inside = new Map<string, RecordedNode>();
  for (const node of nodes) {
    for (const address of ["", ...prefixes(node.module), ...prefixes(node.node)]) {
      const known = inside.get(address);
      if (!known || node.kind === "computed" || known.kind !== "computed") inside.set(address, node);
    }
  }
  return ({ module, parameter }) => {
    if (parameter) return names.has(parameter.name) ? parameter.name : null;
    return names.has(module.address) ? module.address : (inside.get(module.address)?.node ?? null);
  };
}
