/** Columns of an Arrow table as plain arrays; missing numbers are NaN, missing text is empty. */
import type { Table } from "@uwdata/flechette";

/** A fact beside the rows: JSON in the metadata of the schema. */
export function metadata<T>(table: Table, name: string, otherwise: T): T {
  const text = table.schema.metadata?.get(name);
  return text === undefined ? otherwise : (JSON.parse(text) as T);
}

export const has = (table: Table, name: string): boolean => (table.names as string[]).includes(name);

const asNumber = (value: unknown): number => (value === null || value === undefined ? NaN : Number(value));

export function numbers(table: Table, name: string): Float64Array {
  if (!has(table, name)) return new Float64Array(table.numRows).fill(NaN);
  const column = table.getChild(name);
  const values = column.toArray() as ArrayLike<unknown>;
  if (values instanceof Float64Array && column.nullCount === 0) return values;
  const found = new Float64Array(values.length); // a loop: `from` with a function takes ten times as long
  for (let row = 0; row < found.length; row++) found[row] = asNumber(values[row]);
  return found;
}

/** One number of a column, for who does not need the others. */
export function numberAt(table: Table, name: string, row: number): number {
  if (row < 0 || row >= table.numRows || !has(table, name)) return NaN;
  return asNumber(table.getChild(name).at(row));
}

export function texts(table: Table, name: string): string[] {
  const found = new Array<string>(table.numRows).fill("");
  if (!has(table, name)) return found;
  const values = table.getChild(name).toArray() as ArrayLike<unknown>;
  for (let row = 0; row < found.length; row++) found[row] = String(values[row] ?? "");
  return found;
}

/** One text of a column. */
export function textAt(table: Table, name: string, row: number): string {
  if (row < 0 || row >= table.numRows || !has(table, name)) return "";
  return String((table.getChild(name).at(row) as unknown) ?? "");
}

/** All lists of a column: the column is looked up once. */
export function lists<T extends ArrayLike<number>>(table: Table, name: string, none: T): (row: number) => T {
  const column = table.getChild(name) as { at(i: number): unknown };
  return (row) => (column.at(row) as T | null) ?? none;
}

/** One list of a column of lists, without copying where that is possible. */
export function listAt<T extends ArrayLike<number>>(table: Table, name: string, row: number, none: T): T {
  return ((table.getChild(name) as { at(i: number): unknown }).at(row) as T | null) ?? none;
}

interface ListBatch<T> {
  readonly children: readonly { readonly values: T }[];
}

/** Lists of one length, one after the other: of a single batch where they came, of several in a new array. */
export function flat<T extends Float32Array | Uint8Array>(
  table: Table, name: string, size: number, make: new (size: number) => T,
): T {
  const batches = table.getChild(name).data as unknown as readonly ListBatch<T>[];
  const parts = batches.map(({ children }) => children[0].values);
  if (parts.length === 1) return parts[0].subarray(0, size) as T;
  const made = new make(size);
  let at = 0;
  for (const part of parts) {
    made.set(part.subarray(0, size - at), at);
    at += part.length;
  }
  return made;
}
