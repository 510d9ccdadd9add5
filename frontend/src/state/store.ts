/** The state of the page as something that can be watched, and its way into the address and back. */
import { decode, encode } from "./codec";
import { FIRST_STATE, type State } from "./look";

let state: State = FIRST_STATE;
let written = ""; // the state as it stands in the address
let version = 0;
const watchers = new Set<() => void>();

export const getState = (): State => state;
/** Counts changes. */
export const stateVersion = (): number => version;

export function watchState(call: () => void): () => void {
  watchers.add(call);
  return () => watchers.delete(call);
}

const tell = (): void => {
  for (const call of [...watchers]) call();
};

type Through = (draw: () => void, isAtOnce: boolean) => void;
let through: Through = (draw) => draw();

/** Somebody else says when those who watch are told, as what they will draw may be on its way. */
export const drawThrough = (hold: Through): void => void (through = hold);

function set(next: State, text: string, isAtOnce: boolean): void {
  if (next === state) return;
  state = next;
  written = text;
  version++;
  through(tell, isAtOnce);
}

let isDragging = false; // the newest entry of the history is still being changed
let timer: ReturnType<typeof setTimeout> | undefined;
const WRITE_SECS = 0.15; // browsers refuse to have their address changed at every pixel of a drag

/** A change by the user. One drag is one entry of the history, however many places it passed. */
export function change(next: State, isTransient: boolean): void {
  const text = encode(next);
  if (text === written) {
    if (!isTransient) commit();
    return;
  }
  pushSoon.flush(); // what was there before, if it is not in the history yet
  set(next, text, isTransient);
  if (typeof history === "undefined") return;
  if (!isDragging) pushSoon.begin(`#${written}`);
  else if (isTransient) timer ??= setTimeout(write, WRITE_SECS * 1000);
  isDragging = isTransient || isDragging;
  if (!isTransient) commit();
}

/** The browser takes a while for a new entry: it is made when what was chosen has been drawn. */
const LATEST_MS = 100;
const pushSoon = {
  hash: null as string | null,
  timer: undefined as ReturnType<typeof setTimeout> | undefined,
  begin(hash: string): void {
    this.hash = hash;
    this.timer = setTimeout(() => this.flush(), LATEST_MS);
  },
  flush(): void {
    clearTimeout(this.timer);
    if (this.hash !== null) history.pushState(null, "", this.hash);
    this.hash = null;
  },
};

/** The address is that of what is shown: to be called when it has been drawn. */
export const writeAddress = (): void => pushSoon.flush();

function commit(): void {
  if (isDragging) write();
  isDragging = false;
}

/** A change that nobody asked for, as by following a training: it replaces where one is. */
export function adjust(next: State): void {
  set(next, encode(next), false);
  write();
}

function write(): void {
  pushSoon.flush();
  clearTimeout(timer);
  timer = undefined;
  if (typeof history !== "undefined") history.replaceState(null, "", `#${written}`);
}

function read(): void {
  isDragging = false;
  clearTimeout(pushSoon.timer);
  pushSoon.hash = null;
  clearTimeout(timer);
  timer = undefined;
  const next = decode(location.hash.slice(1));
  set(next, encode(next), false);
}

if (typeof window !== "undefined" && typeof location !== "undefined") {
  window.addEventListener("popstate", read);
  window.addEventListener("pagehide", writeAddress); // who comes back finds it as it was
  read();
}
