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
