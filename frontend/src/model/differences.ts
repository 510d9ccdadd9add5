/** Two tensors against each other: numbers, values, and why values cannot be subtracted. */
import { sameShape } from "./spread";

export interface Compared {
  readonly name: string;
  readonly a: number | null;
  readonly b: number | null;
  /** a − b; null unless both are there. */
  readonly difference: number | null;
  /** a / b; null where that says nothing: signs differ, or b is zero. */
  readonly ratio: number | null;
}

export function compareNumbers(name: string, a: number | null, b: number | null): Compared {
  const both = a !== null && b !== null;
  const comparable = both && b !== 0 && Math.sign(a) === Math.sign(b) && Number.isFinite(a / b);
  return { name, a, b, difference: both ? a - b : null, ratio: comparable ? a / b : null };
}

export function subtract(a: ArrayLike<number>, b: ArrayLike<number>): Float32Array {
  const result = new Float32Array(a.length);
  for (let i = 0; i < result.length; i++) result[i] = a[i] - b[i];
  return result;
}

export interface RawValues {
  readonly data: Float32Array;
  readonly shape: readonly number[];
  /** Which samples lie along the first axis; null: there is no such axis. */
  readonly samples: readonly number[] | null;
}

export interface Difference extends RawValues {
  /** A sentence about what was compared with what. */
  readonly note: string;
}

/** Element by element, with samples matched by number: what they share is compared. A text if nothing can be. */
export function differenceOf(a: RawValues, b: RawValues): Difference | string {
  if (a.samples && b.samples) return bySample(a, a.samples, b, b.samples);
  if (!sameShape(a.shape, b.shape)) return shapesDiffer(a.shape, b.shape);
  return { data: subtract(a.data, b.data), shape: a.shape, samples: a.samples ?? b.samples, note: "" };
}

function bySample(a: RawValues, ofA: readonly number[], b: RawValues, ofB: readonly number[]): Difference | string {
  const [restA, restB] = [a.shape.slice(1), b.shape.slice(1)];
  if (!sameShape(restA, restB)) return shapesDiffer(restA, restB, " per sample");
  const shared = ofA.filter((sample) => ofB.includes(sample));
  if (shared.length === 0) {
    const kept = `A: ${ofA.join(", ")}; B: ${ofB.join(", ")}`;
    return `No sample was kept on both sides (${kept}), so no element has a partner.`;
  }
  const size = restA.reduce((left, right) => left * right, 1);
  const data = new Float32Array(shared.length * size);
  shared.forEach((sample, i) => {
    const [atA, atB] = [ofA.indexOf(sample) * size, ofB.indexOf(sample) * size];
    for (let k = 0; k < size; k++) data[i * size + k] = a.data[atA + k] - b.data[atB + k];
  });
  const left = ofA.length + ofB.length - 2 * shared.length;
  const note = left ? `${shared.length} samples were kept on both sides, ${left} on one side only.` : "";
  return { data, shape: [shared.length, ...restA], samples: shared, note };
}

const shapesDiffer = (a: readonly number[], b: readonly number[], what = ""): string =>
  `The shapes differ${what}: [${a.join(", ")}] and [${b.join(", ")}]. Values are subtracted where shapes agree.`;
