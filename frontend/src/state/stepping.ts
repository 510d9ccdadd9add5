/** From one recorded step to another. */
import type { Look, Shown } from "./look";
import type { World } from "./relax";

/**
 * The choice that leads `count` recorded steps on, of one type or of any (null); stops at the ends. Several steps may
 * have one number, as a training and an evaluation step; each is passed, and the type says which is meant. Of several
 * with one number and one type only the newest can be looked at, as everywhere.
 */
export function stepAfter(world: World, shown: Shown, count: number, type: string | null): Partial<Look> | null {
  const { numbers, types, ordinals } = world;
  const fits = (place: number): boolean => type === null || types[place] === type;
  const places = newestOnly(world).filter((place) => fits(place) || ordinals[place] === shown.ordinal);
  const here = places.findIndex((place) => ordinals[place] === shown.ordinal);
  const to = places[Math.min(Math.max(here + count, 0), places.length - 1)];
  if (to === undefined) return null;
  const isAmbiguous = numbers.some((number, place) => number === numbers[to] && types[place] !== types[to]);
  return { step: numbers[to], stepType: isAmbiguous ? types[to] : null };
}

const known = new WeakMap<World, readonly number[]>();

/** Places of steps, without those that a later one of the same number and type stands for. */
function newestOnly(world: World): readonly number[] {
  let found = known.get(world);
  if (!found) {
    const last = new Map<string, number>();
    world.numbers.forEach((number, place) => last.set(`${number} ${world.types[place]}`, place));
    found = [...last.values()].sort((a, b) => a - b);
    known.set(world, found);
  }
  return found;
}
