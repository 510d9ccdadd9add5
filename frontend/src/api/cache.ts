/**
 * Everything that was asked for, kept up to a number of bytes, and who waits for it.
 *
 *     want(request) ─► queue, newest first ─► a few in flight ─► entry replaced ─► those who watch its key
 *
 * What is wanted at one moment flies together: one request, one answer, and those who watch are told in one go. What is
 * looked at goes before what might be looked at next; what nobody looks at any more is never sent.
 */
import { RequestFailed, type Answer } from "./client";
import { askAll, canTravel, type Outcome, type Request, type Together } from "./questions";
import { NOTHING, type Entry, type Flight, type Slot } from "./slots";
import { askFirstTogether, isGiven } from "./start";

export type { Request } from "./questions";
export type { Entry } from "./slots";

const MOST_BYTES = 256e6;
const MOST_SENT = 4; // browsers open six connections, and one listens to news
const MOST_EAGER_SENT = 1; // it must not keep the server from what is looked at
const MOST_TOGETHER = 16;
const MOST_EAGER_TOGETHER = 5;

export class Cache {
  readonly #slots = new Map<string, Slot>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #idlers = new Set<() => void>();
  #queue: string[] = []; // last in, first out
  #eager: string[] = []; // first in, first out
  readonly #looked = new Set<string>(); // on their way, and somebody looks
  readonly #flights = new Set<Flight>();
  #bytes = 0;
  #clock = 0;
  #version = 0;

  constructor(private readonly together: Together = askFirstTogether, private readonly isNear = isGiven) {}

  /** Counts changes of values. */
  get version(): number {
    return this.#version;
  }

  peek(key: string): Entry {
    return this.#slots.get(key)?.entry ?? NOTHING;
  }

  watch(key: string, call: () => void): () => void {
    let set = this.#watchers.get(key);
    if (!set) this.#watchers.set(key, (set = new Set()));
    set.add(call);
    const slot = this.#slots.get(key);
    if (slot?.isDropped && slot.request) this.want(slot.request);
    return () => {
      set.delete(call);
      if (set.size === 0) this.#watchers.delete(key);
    };
  }

  /** Have it loaded unless it is there. May be called while rendering: nobody is told before it has come. */
  want<T>(request: Request<T>): void {
    const slot = this.#slotOf(request);
    slot.used = ++this.#clock;
    slot.isEager = false;
    slot.isDropped = slot.hasWaited = false;
    if (slot.flight) {
      this.#looked.add(request.key);
      if (!slot.entry.pending) slot.entry = { ...slot.entry, pending: true };
      return;
    }
    if ((slot.entry.value !== null && !slot.stale) || (slot.entry.problem && !slot.stale)) return;
    if (!slot.entry.pending) slot.entry = { ...slot.entry, pending: true };
    this.#queue = this.#queue.filter((key) => key !== request.key);
    this.#queue.push(request.key);
    queueMicrotask(() => this.#send());
  }

  /** Have it loaded when there is nothing better to do. */
  prefetch(requests: readonly Request<unknown>[]): void {
    this.#eager = []; // those before were for another place
    for (const request of new Map(requests.map((each) => [each.key, each])).values()) {
      const slot = this.#slots.get(request.key);
      if (slot && (slot.flight || slot.entry.pending || slot.entry.value !== null || slot.entry.problem)) continue;
      this.#slotOf(request).isEager = true;
      this.#eager.push(request.key);
    }
    this.#send();
  }

  /** These have grown: asked for again if somebody looks, else when somebody does. */
  invalidate(matches: (key: string) => boolean): void {
    for (const [key, slot] of this.#slots) {
      if (!matches(key)) continue;
      slot.stale = true;
      if (this.#watchers.has(key) && slot.request) this.want(slot.request);
    }
  }

  /** Asks again for what could not be reached. */
  retry(): void {
    this.invalidate((key) => this.#slots.get(key)?.entry.problem?.status === 0);
  }

  /** Answers that came unasked, all at once: whoever watches any of them is told when all are there. */
  fill(answers: readonly (readonly [Request<unknown>, Answer<unknown>])[]): void {
    for (const [request, answer] of answers) {
      const slot = this.#slotOf(request);
      if (slot.flight?.keys.length === 1) {
        slot.flight.stop.abort(); // its own answer would only be the same
        this.#land(slot.flight);
      }
      this.#queue = this.#queue.filter((key) => key !== request.key);
      slot.stale = false;
      this.#take(slot, answer, true);
    }
    this.#version++;
    for (const [{ key }] of answers) this.#tell(key);
    this.#send();
  }

  /** A value that is known without asking, as after saving it. */
  put(key: string, value: unknown): void {
    const slot = this.#slotOf({ key, load: () => Promise.reject(new Error("put, not asked for")) });
    slot.entry = { value, problem: null, pending: false };
    this.#version++;
    this.#tell(key);
  }

  /** Nothing that somebody looks at is on its way. */
  get isIdle(): boolean {
    return this.#looked.size === 0 && this.#queue.length === 0;
  }
  whenIdle(call: () => void): void {
    if (this.isIdle) call();
    else this.#idlers.add(call);
  }

  #slotOf(request: Request<unknown>): Slot {
    let slot = this.#slots.get(request.key);
    if (!slot) {
      slot = {
        entry: NOTHING, bytes: 0, used: 0, stale: false, request, flight: null, isEager: false,
        hasWaited: false, isDropped: false,
      };
      this.#slots.set(request.key, slot);
    }
    slot.request = request;
    return slot;
  }

  #send(): void {
    if (this.#queue.length) this.#stopEager();
    while (this.#queue.length && this.#count(false) < MOST_SENT) this.#fly(this.#next(), false);
    for (const key of this.#queue) this.#waiting(key);
    while (this.isIdle && this.#eager.length && this.#count(true) < MOST_EAGER_SENT) this.#fly(this.#nextEager(), true);
    if (this.isIdle) {
      const calls = [...this.#idlers];
      this.#idlers.clear();
      for (const call of calls) call();
    }
  }

  #count(isEager: boolean): number {
    let count = 0;
    for (const flight of this.#flights) if (flight.isEager === isEager) count++;
    return count;
  }

  /** The newest that is still wanted, and all others that may travel with it. */
  #next(): Slot[] {
    const found: Slot[] = [];
    const left: string[] = [];
    for (const key of this.#queue.reverse()) {
      const slot = this.#slots.get(key);
      if (!slot || slot.flight) continue;
      if (slot.hasWaited && !this.#watchers.has(key)) this.#drop(slot);
      else if (this.#fits(found, slot, MOST_TOGETHER)) found.push(slot);
      else left.push(key);
    }
    this.#queue = left.reverse();
    return found;
  }

  #nextEager(): Slot[] {
    const found: Slot[] = [];
    while (this.#eager.length) {
      const slot = this.#slots.get(this.#eager[0]);
      if (slot && !slot.flight && slot.entry.value === null) {
        if (!this.#fits(found, slot, MOST_EAGER_TOGETHER)) break;
        found.push(slot);
      }
      this.#eager.shift();
    }
    return found;
  }

  /** The first may be anything; others join if all can travel together, and are as near. */
  #fits(found: readonly Slot[], slot: Slot, most: number): boolean {
    if (found.length === 0) return true;
    const [first, next] = [found[0].request, slot.request];
    if (found.length >= most || !first?.url || !next?.url || !canTravel(first) || !canTravel(next)) return false;
    return this.isNear(first.url) === this.isNear(next.url);
  }

  /** What might be looked at next gives way, unless somebody looks at it by now. */
  #stopEager(): void {
    for (const flight of this.#flights) {
      if (!flight.isEager || flight.keys.some((key) => this.#looked.has(key))) continue;
      flight.stop.abort();
      this.#land(flight);
    }
  }

  #waiting(key: string): void {
    const slot = this.#slots.get(key);
    if (slot) slot.hasWaited = true;
  }

  /** A drag passed it; whoever looks again asks again. */
  #drop(slot: Slot): void {
    slot.entry = slot.entry.value === null ? NOTHING : { ...slot.entry, pending: false };
    slot.isDropped = true;
  }

  #fly(slots: readonly Slot[], isEager: boolean): void {
    if (slots.length === 0) return;
    const requests = slots.map((slot) => slot.request as Request<unknown>);
    const flight: Flight = { keys: requests.map(({ key }) => key), isEager, stop: new AbortController() };
    this.#flights.add(flight);
    for (const slot of slots) {
      slot.flight = flight;
      slot.stale = false;
      if (!isEager) this.#looked.add((slot.request as Request<unknown>).key);
    }
    void askAll(requests, flight.stop.signal, this.together).then((found) => {
      if (this.#flights.has(flight)) this.#arrive(flight, slots, found);
    });
  }

  #arrive(flight: Flight, slots: readonly Slot[], found: readonly Outcome[]): void {
    const looked = flight.keys.map((key) => this.#looked.has(key));
    this.#land(flight);
    slots.forEach((slot, i) => this.#take(slot, found[i], looked[i]));
    this.#version++;
    if (found.some((each) => each instanceof RequestFailed && each.status === 0)) this.#eager = []; // nobody answers
    for (const key of flight.keys) this.#tell(key);
    slots.forEach((slot, i) => {
      if (!slot.stale || !slot.request || slot.entry.problem) return;
      if (this.#watchers.has(flight.keys[i])) this.want(slot.request);
    });
    this.#makeRoom();
    this.#send();
  }

  #take(slot: Slot, found: Outcome, isLooked: boolean): void {
    if (!(found instanceof RequestFailed)) {
      this.#bytes += found.bytes - slot.bytes;
      slot.bytes = found.bytes;
      slot.entry = { value: found.value, problem: null, pending: slot.stale };
      return;
    }
    // What was there stays: a server that has gone does not empty the page.
    const value = found.status === 0 ? slot.entry.value : null;
    slot.entry = isLooked ? { value, problem: found, pending: false } : NOTHING;
  }

  #land(flight: Flight): void {
    this.#flights.delete(flight);
    for (const key of flight.keys) {
      this.#looked.delete(key);
      const slot = this.#slots.get(key);
      if (slot?.flight === flight) slot.flight = null;
    }
  }

  #tell(key: string): void {
    for (const call of [...(this.#watchers.get(key) ?? [])]) call();
  }

  #makeRoom(): void {
    if (this.#bytes <= MOST_BYTES) return;
    const old = [...this.#slots].filter(([key, slot]) => slot.bytes > 0 && !slot.flight && !this.#watchers.has(key));
    old.sort(([, a], [, b]) => a.used - b.used);
    for (const [key, slot] of old) {
      if (this.#bytes <= MOST_BYTES * 0.8) return;
      this.#bytes -= slot.bytes;
      this.#slots.delete(key);
      this.#version++;
    }
  }
}
