/** Changes of the user's own arrangement of the graph. */
import { LAYOUT_VERSION, type Layout } from "../api/types";

export const EMPTY_LAYOUT: Layout = { version: LAYOUT_VERSION, pins: {}, renames: {}, groups: [] };

export const isArranged = ({ pins, renames, groups }: Layout): boolean =>
  Object.keys(pins).length + Object.keys(renames).length + groups.length > 0;

function without<T>(record: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));
}

/** `key` is that of a scene item: `n:` and a node, or `g:` and the address of a module. */
export const withPin = (layout: Layout, key: string, place: readonly [number, number]): Layout => ({
  ...layout, pins: { ...layout.pins, [key]: place },
});

export const withoutPin = (layout: Layout, key: string): Layout => ({ ...layout, pins: without(layout.pins, key) });

/** An empty name gives the own one back. */
export function withName(layout: Layout, of: string, name: string): Layout {
  const typed = name.trim();
  const renames = typed && typed !== of ? { ...layout.renames, [of]: typed } : without(layout.renames, of);
  return { ...layout, renames };
}

export function withGroup(layout: Layout, prefix: string): Layout {
  const typed = prefix.trim();
  return !typed || layout.groups.includes(typed) ? layout : { ...layout, groups: [...layout.groups, typed] };
}

export const withoutGroup = (layout: Layout, prefix: string): Layout => ({
  ...layout, groups: layout.groups.filter((other) => other !== prefix),
});
