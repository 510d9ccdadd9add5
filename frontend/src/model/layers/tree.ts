/** The rows of layers × steps: what modules return, or hold, nested by their addresses, in network order. */

/** One recorded tensor. */
export interface LayerRecord {
  readonly node: string;
  readonly role: string;
  readonly pass: number;
  /** Place in network order. */
  readonly order: number;
}

export interface LayerRow {
  /** Unique: the address, and behind it role and pass where a node has several. */
  readonly key: string;
  readonly node: string;
  readonly label: string;
  /** The class of the module. */
  readonly type: string;
  readonly depth: number;
  /** Row of the table; -1: nothing was recorded of it itself. */
  readonly record: number;
  readonly inner: readonly LayerRow[];
  /** Rows of the table below it, its own first. */
  readonly members: readonly number[];
}

interface Growing {
  readonly name: string;
  order: number;
  readonly records: number[];
  readonly inner: Map<string, Growing>;
}

/** `typeOf` gives the class of a module. */
export function growLayers(records: readonly LayerRecord[], typeOf: (address: string) => string): readonly LayerRow[] {
  const root: Growing = { name: "", order: 0, records: [], inner: new Map() };
  records.forEach((record, place) => {
    let at = root;
    const parts = record.node.split(".");
    parts.forEach((_, i) => {
      const name = parts.slice(0, i + 1).join(".");
      let found = at.inner.get(name);
      if (!found) at.inner.set(name, (found = { name, order: record.order, records: [], inner: new Map() }));
      found.order = Math.min(found.order, record.order);
      at = found;
    });
    at.records.push(place);
  });
  return rowsBelow(root, "", 0, records, typeOf);
}

function rowsBelow(
  parent: Growing, within: string, depth: number, records: readonly LayerRecord[], typeOf: (address: string) => string,
): LayerRow[] {
  const children = [...parent.inner.values()].sort((a, b) => a.order - b.order);
  return children.flatMap((child) => {
    // A list of modules returns nothing: its members stand in its place, under their full names.
    const isPassed = child.records.length === 0 && child.inner.size > 0 && isList(child, typeOf);
    return isPassed ? rowsBelow(child, within, depth, records, typeOf) : [rowOf(child, within, depth, records, typeOf)];
  });
}

const isList = (child: Growing, typeOf: (address: string) => string): boolean =>
  /^(ModuleList|ModuleDict)$/.test(typeOf(child.name)) || child.inner.size === 1;

function rowOf(
  growing: Growing, within: string, depth: number, records: readonly LayerRecord[], typeOf: (address: string) => string,
): LayerRow {
  const label = within && growing.name.startsWith(`${within}.`) ? growing.name.slice(within.length + 1) : growing.name;
  const type = typeOf(growing.name);
  const several = growing.records.length > 1;
  const modules = rowsBelow(growing, growing.name, depth + 1, records, typeOf);
  const own = several ? passesOf(growing, depth + 1 + Math.sign(modules.length), records) : [];
  const inner = own.length && modules.length ? [...modules, foldedPasses(growing.name, own)] : [...own, ...modules];
  const record = several ? -1 : (growing.records[0] ?? -1);
  const members = [...(record >= 0 ? [record] : []), ...inner.flatMap((row) => row.members)];
  return { key: growing.name, node: growing.name, label, type, depth, record, inner, members };
}

/** A row for each role and pass. */
function passesOf({ records: places }: Growing, depth: number, records: readonly LayerRecord[]): LayerRow[] {
  return places.map((place) => {
    const { node, role, pass } = records[place];
    const label = [role, pass > 1 || !role ? `#${pass}` : ""].filter(Boolean).join(" ");
    const key = `${node}\n${role}\n${pass}`;
    return { key, node, label, type: "", depth, record: place, inner: [], members: [place] };
  });
}

/** Beside the modules inside, in one row: what is inside says more than every pass of the whole. */
function foldedPasses(node: string, own: readonly LayerRow[]): LayerRow {
  const members = own.flatMap((row) => row.members);
  const label = `${own.length} ${own.every((row) => row.label.startsWith("#")) ? "passes" : "roles"}`;
  return { key: `${node} passes`, node, label, type: "", depth: own[0].depth - 1, record: -1, inner: own, members };
}

const holdsPasses = ({ inner }: LayerRow): boolean => inner.length > 0 && inner.every(({ key }) => key.includes("\n"));

/** The rows that are seen while some are open. */
export function visibleRows(rows: readonly LayerRow[], open: ReadonlySet<string>): LayerRow[] {
  return rows.flatMap((row) => [row, ...(open.has(row.key) ? visibleRows(row.inner, open) : [])]);
}

/** Rows that fit what was typed, with those around them. */
export function filteredRows(rows: readonly LayerRow[], text: string): LayerRow[] {
  const wanted = text.toLowerCase();
  return rows.flatMap((row) => {
    const isMeant = row.node.toLowerCase().includes(wanted) || row.type.toLowerCase().includes(wanted);
    const inner = filteredRows(row.inner, text);
    return isMeant || inner.length ? [row, ...inner] : [];
  });
}

export const flatten = (rows: readonly LayerRow[]): LayerRow[] => rows.flatMap((row) => [row, ...flatten(row.inner)]);

/** Keys of the rows around a node, outermost first. */
export function wayTo(rows: readonly LayerRow[], node: string): string[] {
  for (const row of rows) {
    if (row.inner.some((each) => each.node === node) && row.node !== node) return [row.key];
    const deeper = wayTo(row.inner, node);
    if (deeper.length) return [row.key, ...deeper];
  }
  return [];
}

/** Whole levels of the rows that are meant, added to those that are open while all of it fits. */
function openLevels(
  rows: readonly LayerRow[], most: number, before: ReadonlySet<string>, isMeant: (row: LayerRow) => boolean,
): Set<string> {
  let open = new Set(before);
  for (let depth = 0; depth < 12; depth++) {
    const level = flatten(rows).filter((row) => row.depth === depth && row.inner.length > 0 && isMeant(row));
    const next = new Set([...open, ...level.map((row) => row.key)]);
    if (visibleRows(rows, next).length > most) break;
    open = next;
  }
  return open;
}

/**
 * What is open if nobody chose: whole levels while they fit, outermost first, modules before passes; then the way to
 * each finding, and the same rows of the other blocks if those fit, too.
 */
export function openByItself(rows: readonly LayerRow[], most: number, nodes: readonly string[]): ReadonlySet<string> {
  const modules = openLevels(rows, most, new Set(), (row) => !holdsPasses(row));
  const open = openLevels(rows, most, modules, holdsPasses);
  const ways = nodes.map((node) => wayTo(rows, node));
  for (const way of ways) for (const key of way) open.add(key);
  const patterns = new Set(ways.flat().map(patternOf));
  const alike = flatten(rows).filter((row) => row.inner.length > 0 && patterns.has(patternOf(row.key)));
  const all = new Set([...open, ...alike.map((row) => row.key)]);
  return visibleRows(rows, all).length <= most ? all : open;
}

/** `blocks.3.mlp.act` -> `blocks.#.mlp.act`: the same layer of other blocks has the same pattern. */
export const patternOf = (name: string): string => name.replace(/(^|\.)\d+(?=\.|$)/, "$1#");
