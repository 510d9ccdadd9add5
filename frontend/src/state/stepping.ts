/** From one recorded step to another. */
import type { Look, Shown } from "./look";
import type { World } from "./relax";

/** The choice that leads `count` recorded steps on, of one type or of any (null); stops at the ends. */
export function stepAfter(world: World, shown: Shown, count: number, type: string | null): Partial<Look> | null {
  const { numbers, types, ordinals } = world;
  // Several steps may have one number; only one of them is shown under it, so that no key leads to where one is.
  const isElsewhere = (place: number): boolean => numbers[place] !== shown.step || ordinals[place] === shown.ordinal;
  const fits = (place: number): boolean => type === null || types[place] === type;
  const places = numbers.map((_, place) => place).filter((place) => fits(place) && isElsewhere(place));
  const here = places.findIndex((place) => ordinals[place] === shown.ordinal);
  const to = places[Math.min(Math.max(here + count, 0), places.length - 1)];
  if (to === undefined) return null;
  const isAmbiguous = numbers.some((number, place) => place !== to && number === numbers[to]);
  return isAmbiguous && type !== null ? { step: numbers[to], type } : { step: numbers[to] };
}
