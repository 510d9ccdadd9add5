/**
 * When everything that was asked for is on screen: for tests and for measuring.
 *
 *     const count = await window.__endoscope.settled();
 *
 * A panel that works elsewhere, as in another thread, says so with `beginWork`.
 */
import { cache } from "./resource";
import { stateVersion, writeAddress } from "./store";

let working = 0;
let settledCount = 0;
const waiting = new Set<() => void>();

/** Something is being made that will be drawn; to be called when it has been handed over for drawing. */
export function beginWork(): () => void {
  working++;
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    if (--working > 0) return;
    for (const call of [...waiting]) call();
    waiting.clear();
  };
}

const isQuiet = (): boolean => working === 0 && cache.isIdle;
/** React finishes what effects have set off in tasks of their own. */
const task = (): Promise<void> =>
  new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done();
    port2.postMessage(null);
  });
/** Canvases are drawn once per frame; a message sent from there arrives after the browser has painted. */
const painted = (): Promise<void> => new Promise((done) => requestAnimationFrame(() => void task().then(done)));

function quiet(): Promise<void> {
  if (working > 0) return new Promise((done) => waiting.add(done));
  return new Promise((done) => cache.whenIdle(done));
}

/** Resolves after the last pixel of the last change. */
export async function settled(): Promise<number> {
  for (;;) {
    const before = stateVersion();
    while (!isQuiet()) await quiet();
    await task();
    await task();
    await painted();
    if (isQuiet() && before === stateVersion()) break;
  }
  writeAddress();
  document.documentElement.dataset.settled = String(++settledCount);
  return settledCount;
}

declare global {
  interface Window {
    __endoscope?: { settled(): Promise<number> };
  }
}

/** To be called once. */
export function announceSettled(watch: (call: () => void) => () => void): () => void {
  window.__endoscope = { settled };
  let isRunning = false;
  const run = (): void => {
    if (isRunning) return;
    isRunning = true;
    void settled().finally(() => (isRunning = false));
  };
  run();
  return watch(run);
}
