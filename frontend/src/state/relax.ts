/**
 * From what was wanted to what can be shown.
 *
 * All that was recorded is a set of places (trial, step, tensor). Choices are applied to it one by one, the newest
 * first; a choice that would leave nothing is skipped. It is not forgotten: as soon as the newer choices leave room
 * for it, it counts again. What remains open is filled in with what is nearest to the skipped choice, or with the best.
 */
import type { Field, Look, Shown } from "./look";
import { NOTHING_SHOWN } from "./look";

/** Tensors of a trial, as columns. */
export interface TensorColumns {
  readonly node: readonly string[];
  readonly role: readonly string[];
  readonly of: readonly string[];
  readonly pass: readonly number[];
  readonly kind: readonly string[];
  /** Number of samples, 0 if it has none. */
  readonly batch: readonly number[];
}

/** What is known about one trial. */
export interface World {
  readonly trial: string;
  readonly numbers: readonly number[];
  readonly types: readonly string[];
  readonly ordinals: readonly number[];
  /** Null: not known yet, so everything is possible. */
  readonly tensors: TensorColumns | null;
  /** Place of a step -> its tensors, ascending; null: not known, any of them. */
  readonly has: (step: number) => readonly number[] | null;
}

/** Places that are still possible in one trial. */
interface Room {
  readonly world: World;
  readonly steps: readonly number[];
  readonly tensors: readonly number[] | null;
}

const OF_TENSOR: readonly Field[] = ["node", "role", "of", "pass", "sample"];
/** In which order open fields are filled in: each is chosen among what those before it leave. */
const FILLED: readonly Field[] = ["step", "of", "node", "role", "pass"];

export function relax(worlds: readonly World[], look: Look, recent: readonly Field[]): Shown {
  let rooms = worlds.map(wholeRoom).filter((room) => room.steps.length > 0);
  if (rooms.length === 0) return { ...NOTHING_SHOWN, trial: worlds[0]?.trial ?? null, aggregate: look.aggregate };
  for (const field of byRecency(look, recent)) {
    const left = rooms.map((room) => narrow(room, field, look[field])).filter((room) => isPossible(room, field));
    if (left.length > 0) rooms = left;
  }
  let room = rooms.find(({ world }) => world.trial === look.trial) ?? rooms[0];
  const shown: Record<string, unknown> = { ...look, trial: room.world.trial };
  for (const field of FILLED) {
    shown[field] = pick(room, field, look);
    if (shown[field] !== null) room = narrow(room, field, shown[field] as string | number);
  }
  const step = room.steps[room.steps.length - 1];
  shown.ordinal = room.world.ordinals[step] ?? null;
  shown.type = room.world.types[step] ?? null;
  const isSampled = look.sample !== null && isPossible(narrow(room, "sample", look.sample), "sample");
  shown.sample = isSampled ? look.sample : null;
  const relaxed = byRecency(look, recent).filter((field) => shown[field] !== look[field]);
  return { ...(shown as unknown as Shown), relaxed };
}

/** Chosen fields, newest first; those of unknown age last. */
function byRecency(look: Look, recent: readonly Field[]): Field[] {
  const older = ["trial", "node", "of", "type", "step", "stepType", "role", "pass", "sample"] as const;
  const all: readonly Field[] = [...recent, ...older];
  return [...new Set(all)].filter((field) => field !== "aggregate" && look[field] !== null);
}

const whole = new WeakMap<World, Room>();

function wholeRoom(world: World): Room {
  let room = whole.get(world);
  if (!room) {
    const { tensors, numbers } = world;
    room = { world, steps: numbers.map((_, i) => i), tensors: tensors && tensors.node.map((_, i) => i) };
    whole.set(world, room);
  }
  return room;
}

function isPossible(room: Room, field: Field): boolean {
  if (room.steps.length === 0) return false;
  return !OF_TENSOR.includes(field) || room.tensors === null || room.tensors.length > 0;
}

function narrow(room: Room, field: Field, wanted: string | number | null): Room {
  const { world, steps, tensors } = room;
  if (field === "trial") return world.trial === wanted ? room : { ...room, steps: [] };
  if (field === "step" || field === "type" || field === "stepType") {
    const column: readonly unknown[] = field === "step" ? world.numbers : world.types;
    const left = steps.filter((step) => column[step] === wanted);
    return { world, steps: left, tensors: tensorsOf(world, left, tensors) };
  }
  if (tensors === null || world.tensors === null) return room;
  const columns = world.tensors;
  const fits = field === "sample"
    ? (tensor: number) => columns.batch[tensor] > (wanted as number)
    : (tensor: number) => (columns[field as keyof TensorColumns] as readonly unknown[])[tensor] === wanted;
  const left = tensors.filter(fits);
  return { world, steps: stepsWith(world, steps, left), tensors: left };
}

/** Tensors that at least one of the steps has. Few collections are different, so each is looked at once. */
function tensorsOf(world: World, steps: readonly number[], tensors: readonly number[] | null): Room["tensors"] {
  if (tensors === null || world.tensors === null) return null;
  const has = new Uint8Array(world.tensors.node.length);
  for (const set of setsOf(world, steps)) {
    if (set === null) return tensors;
    for (const tensor of set) has[tensor] = 1;
  }
  return tensors.filter((tensor) => has[tensor]);
}

function stepsWith(world: World, steps: readonly number[], tensors: readonly number[]): readonly number[] {
  const wanted = new Uint8Array(world.tensors?.node.length ?? 0);
  for (const tensor of tensors) wanted[tensor] = 1;
  const fits = new Map<readonly number[] | null, boolean>();
  for (const set of setsOf(world, steps)) fits.set(set, set === null || set.some((tensor) => wanted[tensor]));
  const sets = setOfStep(world);
  return steps.filter((step) => fits.get(sets[step]));
}

type TensorSet = readonly number[] | null;
const setsByStep = new WeakMap<World, readonly TensorSet[]>();

function setOfStep(world: World): readonly TensorSet[] {
  let found = setsByStep.get(world);
  if (!found) setsByStep.set(world, (found = world.numbers.map((_, step) => world.has(step))));
  return found;
}

function setsOf(world: World, steps: readonly number[]): Set<TensorSet> {
  const [sets, found] = [setOfStep(world), new Set<TensorSet>()];
  let last: TensorSet | undefined;
  for (const step of steps) if (sets[step] !== last) found.add((last = sets[step])); // neighbours are mostly alike
  return found;
}

function pick(room: Room, field: Field, look: Look): string | number | null {
  if (field === "step") return pickStep(room, look.step);
  const { tensors, world } = room;
  if (tensors === null || world.tensors === null) return field === "of" ? look.of ?? "value" : look[field];
  if (tensors.length === 0) return null;
  const column = world.tensors[field as keyof TensorColumns] as readonly (string | number)[];
  const wanted = look[field];
  if (wanted !== null && tensors.some((tensor) => column[tensor] === wanted)) return wanted;
  if (field === "node") return pickNode(world.tensors, tensors, look.node);
  if (field === "of") return pickOf(column as readonly string[], tensors);
  if (field === "pass") return pickPass(column as readonly number[], tensors, look.pass);
  return column[tensors[0]];
}

/** The nearest to the wanted one, of two the earlier; the newest if none was wanted. */
function pickStep({ world, steps }: Room, wanted: number | null): number {
  const last = world.numbers[steps[steps.length - 1]];
  if (wanted === null) return last;
  const far = (step: number): number => Math.abs(world.numbers[step] - wanted);
  return world.numbers[steps.reduce((best, step) => (far(step) < far(best) ? step : best))];
}

function pickOf(column: readonly string[], tensors: readonly number[]): string {
  return tensors.some((tensor) => column[tensor] === "value") ? "value" : column[tensors[0]];
}

function pickPass(column: readonly number[], tensors: readonly number[], wanted: number | null): number {
  const far = (tensor: number): number => (wanted === null ? column[tensor] : Math.abs(column[tensor] - wanted));
  return column[tensors.reduce((best, tensor) => (far(tensor) < far(best) ? tensor : best))];
}

const TELLING = ["loss", "output", "computed", "parameter"]; // what says most about a network, first

/** The node whose name begins most like the wanted one; else what everything leads to. */
function pickNode(columns: TensorColumns, tensors: readonly number[], wanted: string | null): string {
  const worth = (tensor: number): number => {
    const kind = TELLING.indexOf(columns.kind[tensor]);
    const alike = wanted === null ? 0 : commonParts(columns.node[tensor], wanted);
    return alike * 10 - (kind < 0 ? TELLING.length : kind);
  };
  return columns.node[tensors.reduce((best, tensor) => (worth(tensor) > worth(best) ? tensor : best))];
}

function commonParts(a: string, b: string): number {
  const [left, right] = [a.split("."), b.split(".")];
  let n = 0;
  while (n < left.length && n < right.length && left[n] === right[n]) n++;
  return n;
}
