/**
 * Recorded histograms: the same 257 bins for every tensor in the world, so that they can be added up.
 *
 *     0 … 127 negative, largest first | 128 zero | 129 … 256 positive, smallest first
 *
 * Magnitudes are cut into half octaves: [1, 1.5)·2^e and [1.5, 2)·2^e for e from −32 to 31. Stored trimmed: the first
 * bin that is not empty, and the counts from there.
 */
export const BINS = 257;
export const ZERO_BIN = 128;
const LOWEST_EXPONENT = -32;

export interface Histogram {
  readonly first: number;
  readonly counts: ArrayLike<number>;
}

/** Lower and upper end of a bin, lower end first. */
export function binRange(bin: number): [number, number] {
  if (bin === ZERO_BIN) return [0, 0];
  const step = Math.abs(bin - ZERO_BIN) - 1;
  const octave = 2 ** (LOWEST_EXPONENT + (step >> 1));
  const [near, far] = step & 1 ? [1.5 * octave, 2 * octave] : [octave, 1.5 * octave];
  return bin > ZERO_BIN ? [near, far] : [-far, -near];
}

/** Where a value falls. */
export function binOf(value: number): number {
  if (value === 0 || Number.isNaN(value)) return ZERO_BIN;
  const size = Math.abs(value);
  const exponent = Math.floor(Math.log2(size));
  const half = size / 2 ** exponent >= 1.5 ? 1 : 0;
  const step = Math.min(127, Math.max(0, 2 * (exponent - LOWEST_EXPONENT) + half));
  return value > 0 ? ZERO_BIN + 1 + step : ZERO_BIN - 1 - step;
}

/** Counts of 32-bit floats, trimmed. Their exponent and the first bit of their fraction are the bin. */
export function histogramOf(values: Float32Array): Histogram {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const counts = new Uint32Array(BINS);
  for (let i = 0; i < bits.length; i++) {
    const size = bits[i] & 0x7fffffff;
    if (size >= 0x7f800000) continue; // not finite: in no bin
    if (size === 0) {
      counts[ZERO_BIN]++;
      continue;
    }
    const step = Math.min(127, Math.max(0, (size >>> 22) - 2 * (127 + LOWEST_EXPONENT)));
    counts[bits[i] >>> 31 ? ZERO_BIN - 1 - step : ZERO_BIN + 1 + step]++;
  }
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return { first: ZERO_BIN, counts: [] };
  return { first, counts: counts.subarray(first, counts.findLastIndex((count) => count > 0) + 1) };
}

export function total(histogram: Histogram): number {
  let sum = 0;
  for (let i = 0; i < histogram.counts.length; i++) sum += Number(histogram.counts[i]);
  return sum;
}

export function addUp(histograms: readonly Histogram[]): Histogram {
  const [first, last] = binSpan(histograms);
  if (last < first) return { first: ZERO_BIN, counts: [] };
  const counts = new Float64Array(last - first + 1);
  for (const { first: start, counts: own } of histograms) {
    for (let i = 0; i < own.length; i++) counts[start - first + i] += Number(own[i]);
  }
  return { first, counts };
}

/** First and last bin that any of them uses; last < first if all are empty. */
export function binSpan(histograms: readonly Histogram[]): [number, number] {
  let first = BINS;
  let last = -1;
  for (const histogram of histograms) {
    if (histogram.counts.length === 0) continue;
    first = Math.min(first, histogram.first);
    last = Math.max(last, histogram.first + histogram.counts.length - 1);
  }
  return [first, last];
}
