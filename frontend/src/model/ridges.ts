/** Which steps are drawn where there is no room for all. */

const MOST = 15;

/** Places of steps, spread evenly, the first and the last among them; and that of the chosen step, in its turn. */
export function ridgesOf(steps: ArrayLike<number>, chosen: number | null): number[] {
  const count = Math.min(MOST, steps.length);
  const places = Array.from({ length: count }, (_, i) =>
    count === 1 ? 0 : Math.round((i * (steps.length - 1)) / (count - 1)));
  const own = chosen === null ? -1 : Array.prototype.indexOf.call(steps, chosen);
  if (own >= 0 && !places.includes(own)) places.push(own);
  return places.sort((a, b) => a - b);
}
