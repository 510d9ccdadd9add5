/**
 * A choice is drawn once: when what it needs is there, or after a moment that nobody notices.
 *
 *     change ─► askers ask the server ─► all of it in memory: drawn at once
 *                                     └► else drawn when it has come, at the latest after LONGEST_MS
 *
 * Drawing before and after would take as long as the answer itself, and keep the browser from reading it.
 */
import type { Request } from "../api/cache";
import { cache } from "./resource";
import { beginWork } from "./settled";
import { drawThrough } from "./store";

/** Asks for what is to be shown, and says what that was. */
type Asker = () => readonly Request<unknown>[];

const LONGEST_MS = 50;

const askers = new Set<Asker>();

export function addAsker(ask: Asker): () => void {
  askers.add(ask);
  return () => void askers.delete(ask);
}

interface Held {
  readonly draw: () => void;
  readonly finish: () => void;
  readonly timer: ReturnType<typeof setTimeout>;
  stops: readonly (() => void)[];
}

let held: Held | null = null;

function missing(): string[] {
  const requests = [...askers].flatMap((ask) => ask());
  return [...new Set(requests.map(({ key }) => key))].filter((key) => {
    const { value, pending } = cache.peek(key);
    return pending && value === null; // an older answer can be drawn, and is by those who watch its key
  });
}

function release(): void {
  if (!held) return;
  const { draw, finish, timer, stops } = held;
  held = null;
  clearTimeout(timer);
  for (const stop of stops) stop();
  draw();
  finish();
}

/** What has come may lead to more: another trial, to its newest step. */
function look(): void {
  if (!held) return;
  for (const stop of held.stops) stop();
  held.stops = [];
  const keys = missing();
  if (keys.length === 0) release();
  else held.stops = keys.map((key) => cache.watch(key, look));
}

/** While a hand moves something, it is drawn at once. */
export function hold(draw: () => void, isAtOnce: boolean): void {
  if (isAtOnce) {
    missing();
    if (held) release();
    else draw();
    return;
  }
  // Who presses keys faster than answers come still sees where he is.
  held ??= { draw, finish: beginWork(), timer: setTimeout(release, LONGEST_MS), stops: [] };
  look();
}

drawThrough(hold);
