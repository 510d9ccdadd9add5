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

export const ABSENT = 0;
export const VALUE = 1;
export const NAN = 2;
export const INFINITE = 3;
/** There is nothing to compare it with. */
export const NOTHING = 4;

/** From nothing to something, and back: beyond every ratio. */
export const BEYOND = 9;
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

/** How one number stands to a reference. */
export function against(value: number, reference: number, isShare: boolean): number {
  if (isShare) return value - reference;
  const [own, other] = [Math.abs(value), Math.abs(reference)];
  if (own === other) return 0;
  if (own === 0) return -BEYOND;
  return other === 0 ? BEYOND : Math.log10(own / other);
}

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
    return compared(own, this.isShare, (column) => (other ? other(row, column) : NaN));
  }

  #deriveGroup(row: number): void {
    const group = this.groupOf(row);
    const members = group.includes(row) ? group : [row];
    const own = members.map((each) => this.#own(each));
    const medians = own.map(() => new Float64Array(this.cells.columns).fill(NaN));
    if (members.length > OTHERS_NEEDED) {
      for (let column = 0; column < this.cells.columns; column++) {
        const there = own.filter(({ states }) => states[column] === VALUE).map(({ values }) => values[column]);
        const sorted = Float64Array.from(there).sort();
        own.forEach(({ states, values }, i) => {
          if (states[column] !== VALUE || sorted.length <= OTHERS_NEEDED) return;
          medians[i][column] = medianWithout(sorted, values[column]);
        });
      }
    }
    members.forEach((each, i) => {
      this.#lines.set(each, compared(own[i], this.isShare, (column) => medians[i][column]));
    });
  }
}

/** The median of sorted numbers when one of them is left out. */
export function medianWithout(sorted: ArrayLike<number>, value: number): number {
  let place = 0;
  while (sorted[place] < value) place++;
  const at = (i: number): number => sorted[i < place ? i : i + 1];
  const count = sorted.length - 1;
  return count % 2 ? at(count >> 1) : (at((count >> 1) - 1) + at(count >> 1)) / 2;
}

function compared(own: Line, isShare: boolean, referenceAt: (column: number) => number): Line {
  const columns = own.values.length;
  const line: Line = { values: new Float32Array(columns), states: own.states.slice() };
  for (let column = 0; column < columns; column++) {
    if (own.states[column] !== VALUE) continue;
    const reference = referenceAt(column);
    if (Number.isNaN(reference)) line.states[column] = NOTHING;
    else line.values[column] = against(own.values[column], reference, isShare);
  }
  return line;
}

function vsPast(own: Line, isShare: boolean): Line {
  const medians = mediansBefore(own);
  return compared(own, isShare, (column) => medians[column]);
}

/**
 * For each column the median of the numbers before it; NaN where there are fewer than three. Numbers are sorted once,
 * in a list that each of them leaves again, the last one first: the median then moves by one place at most.
 */
export function mediansBefore(line: Line): Float64Array {
  const columns: number[] = [];
  for (let column = 0; column < line.values.length; column++) if (line.states[column] === VALUE) columns.push(column);
  const count = columns.length;
  const numbers = Float32Array.from(columns, (column) => line.values[column]);
  const order = sortedPlaces(numbers);
  const rank = new Int32Array(count); // from 1 on; 0 and count + 1 are the ends of the list
  order.forEach((place, i) => (rank[place] = i + 1));
  const before = Int32Array.from({ length: count + 2 }, (_, i) => i - 1);
  const after = Int32Array.from({ length: count + 2 }, (_, i) => i + 1);
  const at = (i: number): number => numbers[order[i - 1]];
  const medians = new Float64Array(line.values.length).fill(NaN);
  let middle = (count + 1) >> 1; // the lower one of two
  for (let left = count; left > PAST_NEEDED; left--) {
    const gone = rank[left - 1];
    const isOdd = left % 2 === 1;
    if (isOdd && gone >= middle) middle = before[middle];
    else if (!isOdd && gone <= middle) middle = after[middle];
    after[before[gone]] = after[gone];
    before[after[gone]] = before[gone];
    medians[columns[left - 1]] = isOdd ? (at(middle) + at(after[middle])) / 2 : at(middle);
  }
  return medians;
}

/** Places of numbers in ascending order: bits and place in one double, as sorting doubles needs no function. */
function sortedPlaces(numbers: Float32Array): Float64Array {
  const bits = new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.length);
  const keys = Float64Array.from(bits, (each, place) => {
    const ordered = each >>> 31 ? ~each >>> 0 : (each | 0x80000000) >>> 0;
    return ordered * PLACES + place;
  });
  return keys.sort().map((key) => key % PLACES);
}

const PLACES = 2 ** 20;
