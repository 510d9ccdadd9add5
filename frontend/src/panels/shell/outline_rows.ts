/** The tree of groups and nodes as rows, as far as it is open. */
import type { GraphModel } from "../../model/graph";

export interface OutlineRow {
  readonly key: string;
  readonly level: number;
  readonly label: string;
  /** -1 for a group. */
  readonly node: number;
  /** Of a group. */
  readonly address: string;
  readonly open: boolean;
  /** Nodes inside. */
  readonly size: number;
}

/** In the order of first use, groups and nodes mixed, as the network runs. */
export function outlineRows(model: GraphModel, open: ReadonlySet<string>): OutlineRow[] {
  const rows: OutlineRow[] = [];
  const visit = (id: number, level: number): void => {
    const group = model.groups[id];
    const inside = [
      ...group.groups.map((inner) => ({ order: model.groups[inner].order, group: inner, node: -1 })),
      ...group.nodes.map((node) => ({ order: model.nodes[node].order, group: -1, node })),
    ].sort((a, b) => a.order - b.order);
    for (const item of inside) {
      if (item.node >= 0) {
        const { name, label } = model.nodes[item.node];
        rows.push({ key: `n ${name}`, level, label, node: item.node, address: "", open: false, size: 1 });
        continue;
      }
      const { address, label, size } = model.groups[item.group];
      const isOpen = open.has(address);
      rows.push({ key: `g ${address}`, level, label, node: -1, address, open: isOpen, size });
      if (isOpen) visit(item.group, level + 1);
    }
  };
  visit(0, 0);
  return rows;
}
