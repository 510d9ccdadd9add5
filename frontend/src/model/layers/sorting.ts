/** Sorting many short rows of numbers by their bits, a byte at a time: calls of `sort` cost more than the work. */

let keys = new Uint32Array(0);
let places = new Uint32Array(0);
let others = new Uint32Array(0);
const starts = new Uint32Array(256);

/** Places of numbers in ascending order; the array is used again by the next call. */
export function placesInOrder(numbers: Float32Array): Uint32Array {
  const count = numbers.length;
  if (keys.length < count) {
    keys = new Uint32Array(count);
    places = new Uint32Array(count);
    others = new Uint32Array(count);
  }
  const bits = new Uint32Array(numbers.buffer, numbers.byteOffset, count);
  for (let place = 0; place < count; place++) {
    const each = bits[place];
    keys[place] = each >>> 31 ? ~each : each | 0x80000000; // these ascend with the numbers
    places[place] = place;
  }
  for (let shift = 0; shift < 32; shift += 8) if (countBytes(count, shift)) moveBy(count, shift);
  return places.subarray(0, count);
}

/** Where numbers with each byte begin; false if all have the same. */
function countBytes(count: number, shift: number): boolean {
  starts.fill(0);
  for (let i = 0; i < count; i++) starts[(keys[i] >>> shift) & 255]++;
  if (count === 0 || starts[(keys[0] >>> shift) & 255] === count) return false;
  let before = 0;
  for (let byte = 0; byte < 256; byte++) {
    const own = starts[byte];
    starts[byte] = before;
    before += own;
  }
  return true;
}

function moveBy(count: number, shift: number): void {
  for (let i = 0; i < count; i++) {
    const place = places[i];
    others[starts[(keys[place] >>> shift) & 255]++] = place;
  }
  [places, others] = [others, places];
}
