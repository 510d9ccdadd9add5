/**
 * What a cell of layers × steps is coloured by: the number itself, or how it stands to a reference.
 *
 *     as it is          the number
 *     vs. own past      ÷ the median of the layer's earlier recorded steps, from the fourth on
 *     vs. other blocks  ÷ the median of the same layer in other blocks at the same step; needs two others
 *     vs. a trial       ÷ the same layer at the same step of another trial
 *
 * Ratios are kept as their decimal logarithm; of shares it is the difference.
 */
import { ABSENT, HAS_INF, HAS_NAN, NOTHING, VALUE } from "../heat";
import { against } from "../ratio";
import { placesInOrder } from "./sorting";

export { ABSENT, HAS_INF as INFINITE, HAS_NAN as NAN, NOTHING, VALUE };

const PAST_NEEDED = 3;
const OTHERS_NEEDED = 2;

export interface Cells {
  readonly rows: number;
  readonly columns: number;
  /** Row after row. */
  readonly values: Float32Array;
  readonly states: Uint8Array;
}

export interface Line {
  readonly values: Float32Array;
  readonly states: Uint8Array;
}

export type Reference = "absolute" | "past" | "blocks" | "trial";

/** Rows are worked out when they are asked for: mostly a small part is in view. */
export class Derived {
  readonly #lines = new Map<number, Line>();

  constructor(
    readonly cells: Cells,
    readonly reference: Reference,
    readonly isShare: boolean,
    /** Row -> rows of the same layer in all blocks, itself included. */
    private readonly groupOf: (row: number) => readonly number[],
    /** Row and column -> the number of the other trial; NaN if there is none. */
    private readonly other: ((row: number, column: number) => number) | null,
  ) {}

  line(row: number): Line {
    let found = this.#lines.get(row);
    if (!found) {
      if (this.reference === "blocks") this.#deriveGroup(row);
      else this.#lines.set(row, this.#derive(row));
      found = this.#lines.get(row) as Line;
    }
    return found;
  }

  #own(row: number): Line {
    const { values, states, columns } = this.cells;
    const [from, to] = [row * columns, (row + 1) * columns];
    return { values: values.subarray(from, to), states: states.subarray(from, to) };
  }

  #derive(row: number): Line {
    const own = this.#own(row);
    if (this.reference === "absolute") return own;
    if (this.reference === "past") return vsPast(own, this.isShare);
    const { other } = this;
    const references = new Float64Array(own.values.length).fill(NaN);
    if (other) for (let column = 0; column < references.length; column++) references[column] = other(row, column);
    return compared(own, this.isShare, references);
  }

  #deriveGroup(row: number): void {
    const group = this.groupOf(row);
    const members = group.includes(row) ? group : [row];
    const lines = vsOthers(members.map((each) => this.#own(each)), this.isShare);
    members.forEach((each, i) => this.#lines.set(each, lines[i]));
  }
}

/** Each row, column by column, against the median of the others. */
function vsOthers(rows: readonly Line[], isShare: boolean): readonly Line[] {
  const columns = rows[0].values.length;
  const lines = rows.map(({ states }): Line => ({ values: new Float32Array(columns), states: states.slice() }));
  const numbers = new Float32Array(rows.length);
  for (let column = 0; column < columns; column++) {
    let count = 0;
    for (const { states, values } of rows) if (states[column] === VALUE) numbers[count++] = values[column];
    const sorted = numbers.subarray(0, count).sort();
    for (let i = 0; i < rows.length; i++) {
      const own = rows[i].values[column];
      if (rows[i].states[column] !== VALUE) continue;
      if (count <= OTHERS_NEEDED) lines[i].states[column] = NOTHING;
      else lines[i].values[column] = against(own, medianWithout(sorted, own), isShare);
    }
  }
  return lines;
}

/** The median of sorted numbers when one of them, of this value, is left out. */
export function medianWithout(sorted: ArrayLike<number>, value: number): number {
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 0) return sorted[value <= sorted[middle - 1] ? middle : middle - 1];
  const low = value < sorted[middle] ? middle : middle - 1;
  const high = value > sorted[middle] ? middle : middle + 1;
  return (sorted[low] + sorted[high]) / 2;
}

/** Row by row against `references`, which are NaN where there is nothing to compare with. */
function compared(own: Line, isShare: boolean, references: ArrayLike<number>): Line {
  const columns = own.values.length;
  const line: Line = { values: new Float32Array(columns), states: own.states.slice() };
  for (let column = 0; column < columns; column++) {
    if (own.states[column] !== VALUE) continue;
    const reference = references[column];
    if (Number.isNaN(reference)) line.states[column] = NOTHING;
    else line.values[column] = against(own.values[column], reference, isShare);
  }
  return line;
}

export const vsPast = (own: Line, isShare: boolean): Line => compared(own, isShare, mediansBefore(own));

/**
 * For each column the median of the numbers before it; NaN where there are fewer than three. Numbers are sorted once,
 * in a list that each of them leaves again, the last one first: the median then moves by one place at most. The array
 * is used again by the next call.
 */
export function mediansBefore(line: Line): Float64Array {
  const { values, states } = line;
  const { columns, numbers, rank, before, after, found } = roomFor(values.length);
  const medians = found.subarray(0, values.length).fill(NaN);
  let count = 0;
  for (let column = 0; column < values.length; column++) {
    if (states[column] !== VALUE) continue;
    columns[count] = column;
    numbers[count++] = values[column];
  }
  const order = placesInOrder(numbers.subarray(0, count));
  for (let i = 0; i < count; i++) rank[order[i]] = i + 1; // 0 and count + 1 are the ends of the list
  for (let i = 0; i < count + 2; i++) {
    before[i] = i - 1;
    after[i] = i + 1;
  }
  let middle = (count + 1) >> 1; // the lower one of two
  for (let left = count; left > PAST_NEEDED; left--) {
    const gone = rank[left - 1];
    const isOdd = left % 2 === 1;
    if (isOdd && gone >= middle) middle = before[middle];
    else if (!isOdd && gone <= middle) middle = after[middle];
    after[before[gone]] = after[gone];
    before[after[gone]] = before[gone];
    const low = numbers[order[middle - 1]];
    medians[columns[left - 1]] = isOdd ? (low + numbers[order[after[middle] - 1]]) / 2 : low;
  }
  return medians;
}

/** Where `mediansBefore` works: hundreds of rows follow each other, and each would leave six arrays behind. */
interface Room {
  readonly size: number;
  readonly columns: Int32Array;
  readonly numbers: Float32Array;
  readonly rank: Int32Array;
  readonly before: Int32Array;
  readonly after: Int32Array;
  readonly found: Float64Array;
}

let room: Room | null = null;

function roomFor(size: number): Room {
  if (room !== null && room.size >= size) return room;
  const whole = (): Int32Array => new Int32Array(size + 2);
  room = {
    size, columns: whole(), numbers: new Float32Array(size), rank: whole(), before: whole(), after: whole(),
    found: new Float64Array(size),
  };
  return room;
}
