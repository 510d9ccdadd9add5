/** Which modules are open, which row is current, and what keys do. */
import { useCallback, useMemo, useState, type KeyboardEvent } from "react";
import { keyOf, type ModuleRow, type ModuleTree } from "./module_tree";

const FIRST_ROWS = 36; // about what a small screen shows
const PAGE = 15;

/** Trial -> open modules: they stay as they were while another tab is looked at. */
const remembered = new Map<string, ReadonlySet<string>>();

export interface TreeState {
  readonly rows: readonly ModuleRow[];
  /** Place in `rows`. */
  readonly current: number;
  fold(row: ModuleRow): void;
  foldAll(open: boolean): void;
  point(row: ModuleRow): void;
  onKeyDown(event: KeyboardEvent): void;
}

export function useTree(
  tree: ModuleTree, trial: string, query: string, first: string | null, onOpen: (row: ModuleRow) => void,
): TreeState {
  const [open, setOpen] = useState(() => remembered.get(trial) ?? opened(tree, first));
  const [key, setKey] = useState(first);
  const rows = useMemo(() => (query.trim() ? tree.found(query) : tree.rows(open)), [tree, open, query]);
  const current = Math.max(0, rows.findIndex((row) => row.key === key));
  const change = useCallback(
    (next: ReadonlySet<string>) => {
      remembered.set(trial, next);
      setOpen(next);
    },
    [trial],
  );
  const fold = useCallback(
    (row: ModuleRow) => {
      const next = new Set(open);
      if (!next.delete(row.module.address)) next.add(row.module.address);
      change(next);
      setKey(row.key);
    },
    [open, change],
  );
  const foldAll = (all: boolean): void =>
    change(all ? new Set(tree.byAddress.keys()) : new Set(tree.roots.map((module) => module.address)));
  const point = useCallback((row: ModuleRow) => setKey(row.key), []);
  const go = (place: number): void => setKey(rows[Math.min(Math.max(place, 0), rows.length - 1)]?.key ?? null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[current];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(current + 1),
      ArrowUp: () => go(current - 1),
      PageDown: () => go(current + PAGE),
      PageUp: () => go(current - PAGE),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (row.expanded === false ? fold(row) : row.expanded && go(current + 1)),
      ArrowLeft: () => (row.expanded ? fold(row) : row.parent !== null && setKey(row.parent)),
      Enter: () => onOpen(row),
      " ": () => row.expanded !== null && fold(row),
    };
    if (!(event.key in keys)) return;
    keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  };
  return { rows, current, fold, foldAll, point, onKeyDown };
}

/** As much as fits, and everything around the node that is looked at. */
function opened(tree: ModuleTree, first: string | null): Set<string> {
  const open = tree.openAtFirst(FIRST_ROWS);
  const all = tree.rows(new Set(tree.byAddress.keys()));
  const byKey = new Map(all.map((row) => [row.key, row]));
  for (let at = byKey.get(byKey.get(first ?? "")?.parent ?? ""); at; at = byKey.get(at.parent ?? "")) {
    open.add(at.module.address);
  }
  return open;
}

/** The row that a node of the graph belongs to: its parameter, its module, or the module around it. */
export function rowKeyFor(tree: ModuleTree, node: string | null, module: string): string | null {
  if (node === null) return null;
  for (const { own } of tree.modules) if (own.some((parameter) => parameter.name === node)) return `p:${node}`;
  for (const address of [node, module]) {
    const found = address ? tree.byAddress.get(address) : undefined; // what is outside of all modules is no module
    if (found) return keyOf(found);
  }
  return null;
}
