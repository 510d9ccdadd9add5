/** What takes the server seconds begins when nobody clicks: then no click has to share the processor with it. */
import { stateVersion } from "./store";

const REST_MS = 700;
const MOST_MS = 8000; // who never stops clicking gets it, too

export function whenResting(call: () => void): void {
  const began = performance.now();
  const look = (before: number): void => {
    const now = stateVersion();
    if (now === before || performance.now() - began >= MOST_MS) call();
    else setTimeout(look, REST_MS, now);
  };
  setTimeout(look, REST_MS, stateVersion());
}
