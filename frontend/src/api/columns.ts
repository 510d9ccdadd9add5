/** Columns of an Arrow table as plain arrays; missing numbers are NaN, missing text is empty. */
import type { Table } from "@uwdata/flechette";

/** A fact beside the rows: JSON in the metadata of the schema. */
export function metadata<T>(table: Table, name: string, otherwise: T): T {
  const text = table.schema.metadata?.get(name);
  return text === undefined ? otherwise : (JSON.parse(text) as T);
}

const has = (table: Table, name: string): boolean => (table.names as string[]).includes(name);

export function numbers(table: Table, name: string): Float64Array {
  if (!has(table, name)) return new Float64Array(table.numRows).fill(NaN);
  const column = table.getChild(name);
  const values = column.toArray() as ArrayLike<unknown>;
  if (values instanceof Float64Array && column.nullCount === 0) return values;
  return Float64Array.from(values, (value) => (value === null || value === undefined ? NaN : Number(value)));
}

export function texts(table: Table, name: string): string[] {
  if (!has(table, name)) return new Array<string>(table.numRows).fill("");
  return Array.from(table.getChild(name).toArray() as ArrayLike<unknown>, (value) => String(value ?? ""));
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
