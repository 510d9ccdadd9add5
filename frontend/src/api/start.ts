/**
 * What the page begins with, asked for by the document itself while this code was still on its way. Whoever asks for
 * one of the addresses in it while the page begins is answered from there, once.
 */
import { address, apart, askBody, askStart, askTogether, RequestFailed, type Body, type BodyOrFailure } from "./client";

const HERE = address("");
let given: Promise<Map<string, BodyOrFailure>> | null = null;
let arrived: Map<string, BodyOrFailure> | null = null;

/** `take` gets the addresses that it can be asked for by, before anybody who waits is answered. */
export function beginStart(take: (addresses: readonly string[]) => void = () => undefined): void {
  given = askStart().then(
    ({ data }) => {
      arrived = new Map(apart(data.buffer));
      take([...arrived.keys()]);
      return arrived;
    },
    () => new Map(),
  );
}

/** What was given for an address, which is then used up; null if there is nothing, or no answer. */
export function takeAtOnce(name: string): Body | null {
  const found = arrived?.get(name) ?? null;
  if (found === null || found instanceof RequestFailed) return null;
  arrived?.delete(name);
  return found;
}

/** Whether it can be had without asking: it must not wait for something else that has to be asked for. */
export const isGiven = (url: string): boolean => arrived?.has(nameOf(url)) ?? false;

export const nameOf = (url: string): string => decodeURIComponent(url.slice(HERE.length));

/** From now on the server is asked: what was given is no longer new. */
export function endStart(): void {
  given = arrived = null;
}

async function takeGiven(url: string): Promise<BodyOrFailure | null> {
  const all = await given;
  const name = nameOf(url);
  const found = all?.get(name) ?? null;
  all?.delete(name);
  return found;
}

export async function askFirst(url: string, signal?: AbortSignal): Promise<Body> {
  const found = given && (await takeGiven(url));
  if (found instanceof RequestFailed) throw found;
  return found ?? askBody(url, signal);
}

export async function askFirstTogether(urls: readonly string[], signal?: AbortSignal): Promise<BodyOrFailure[]> {
  if (!given) return askTogether(urls, signal);
  const found = await Promise.all(urls.map(takeGiven));
  const left = urls.filter((_, i) => !found[i]);
  const rest = left.length === 0 ? [] : await askTogether(left, signal);
  return found.map((body) => body ?? (rest.shift() as BodyOrFailure));
}
