/** The only place that talks to the server: one function per form in which answers travel. */
import { tableFromIPC, type Table } from "@uwdata/flechette";
import { takeFirstAnswer, tokenHeaders } from "./token";
import type { Failure, Part } from "./types";

/** The server said no, and why; or it could not be reached (`status` 0). */
export class RequestFailed extends Error {
  readonly status: number;
  readonly kind: string;
  constructor(sentence: string, status: number, kind: string) {
    super(sentence);
    this.status = status;
    this.kind = kind;
  }
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

const HERE = "./api/"; // relative, so that the page also works below a path

/** What is null or undefined is left out. */
export function address(path: string, query: Query = {}): string {
  let text = "";
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    text += `${text && "&"}${name}=${encodeURIComponent(value)}`;
  }
  return `${HERE}${path}${text ? `?${text}` : ""}`;
}

export const trialAddress = (trial: string, path: string, query: Query = {}): string =>
  address(`trials/${encodeURIComponent(trial)}${path && `/${path}`}`, query);

async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, { ...init, headers: { ...init.headers, ...tokenHeaders() } });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestFailed("The server does not answer. Start it again with endoscope show.", 0, "Unreachable");
  }
  if (answer.ok) return answer;
  throw await failure(answer);
}

async function failure(answer: Response): Promise<RequestFailed> {
  const fallback = `The server answered ${answer.status} ${answer.statusText}.`;
  try {
    const said = (await answer.json()) as Partial<Failure>;
    return new RequestFailed(said.error ?? fallback, answer.status, said.kind ?? "");
  } catch {
    return new RequestFailed(fallback, answer.status, "");
  }
}

/** Something of a known size, for the cache. */
export interface Answer<T> {
  readonly value: T;
  readonly bytes: number;
}

/** What an address was answered with. */
export interface Body {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly header: (name: string) => string | null;
}

export async function askBody(url: string, signal?: AbortSignal): Promise<Body> {
  return bodyOf(await ask(url, { signal }));
}

/** What the document has asked for already, or asked for now. */
export async function askStart(): Promise<Body> {
  const first = await takeFirstAnswer();
  return bodyOf(first?.ok ? first : await ask(address("start")));
}

async function bodyOf(answer: Response): Promise<Body> {
  return { data: new Uint8Array(await answer.arrayBuffer()), header: (name) => answer.headers.get(name) };
}

/** A body of an answer that arrived together with others, or the reason why there is none. */
export type BodyOrFailure = Body | RequestFailed;

/** Several addresses in one request: see HTTP_API.md. */
export async function askTogether(urls: readonly string[], signal?: AbortSignal): Promise<BodyOrFailure[]> {
  const asked = urls.map((url) => `ask=${encodeURIComponent(url.slice(HERE.length))}`);
  const answer = await ask(`${HERE}together?${asked.join("&")}`, { signal });
  return apart(await answer.arrayBuffer()).map(([, body]) => body);
}

/** Bodies in the order in which they were asked for, each with its address. They begin at multiples of eight bytes. */
export function apart(whole: ArrayBuffer): [string, BodyOrFailure][] {
  const headBytes = new DataView(whole).getUint32(0, true);
  const text = new TextDecoder();
  const parts = JSON.parse(text.decode(new Uint8Array(whole, 4, headBytes))) as readonly Part[];
  let at = 4 + headBytes;
  return parts.map(({ address: asked, status, bytes, headers }): [string, BodyOrFailure] => {
    const data = new Uint8Array(whole, at, bytes);
    at += Math.ceil(bytes / 8) * 8;
    const name = decodeURIComponent(asked);
    if (status < 400) return [name, { data, header: (word) => headers[word.toLowerCase()] ?? null }];
    const said = JSON.parse(text.decode(data)) as Failure;
    return [name, new RequestFailed(said.error, status, said.kind)];
  });
}

export function readJson<T>({ data }: Body): Answer<T> {
  return { value: JSON.parse(new TextDecoder().decode(data)) as T, bytes: data.byteLength * 2 };
}

export function readArrow({ data }: Body): Answer<Table> {
  return { value: tableFromIPC(data), bytes: data.byteLength };
}

/** Raw values with what the headers say about them. */
export interface Floats {
  readonly data: Float32Array;
  readonly shape: readonly number[];
  /** Which samples they are of; null: the tensor is kept whole. */
  readonly samples: readonly number[] | null;
  readonly dtype: string;
}

export function readFloats({ data, header }: Body): Answer<Floats> {
  const told = <T>(name: string, otherwise: T): T => {
    const text = header(name);
    return text === null ? otherwise : (JSON.parse(text) as T);
  };
  const value = {
    data: new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4),
    shape: told<number[]>("X-Shape", []),
    samples: told<number[] | null>("X-Samples", null),
    dtype: told("X-Dtype", "float32"),
  };
  return { value, bytes: data.byteLength };
}

export const putJson = (url: string, body: unknown): Promise<Response> =>
  ask(url, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
