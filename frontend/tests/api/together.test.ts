/** What is wanted at one moment travels together, and gives way to nothing that is only fetched ahead. */
import { expect, test } from "vitest";
import { Cache, type Request } from "../../src/api/cache";
import { apart, RequestFailed, type BodyOrFailure } from "../../src/api/client";

const tick = (): Promise<void> => new Promise((done) => setTimeout(done));
const body = (text: string): BodyOrFailure => ({ data: new TextEncoder().encode(text), header: () => null });

function setUp() {
  const flights: { urls: readonly string[]; signal: AbortSignal; answer: (bodies: BodyOrFailure[]) => void }[] = [];
  const cache = new Cache((urls, signal) => {
    return new Promise((answer) => flights.push({ urls, signal, answer }));
  });
  const request = (url: string): Request<string> => ({
    key: url,
    url,
    read: ({ data }) => ({ value: new TextDecoder().decode(data), bytes: data.length }),
    load: () => Promise.reject(new RequestFailed(`${url} was asked for alone`, 400, "")),
  });
  return { cache, flights, request };
}

test("what is wanted at one moment is one request, and is there at one moment", async () => {
  const { cache, flights, request } = setUp();
  const seen: unknown[] = [];
  for (const key of ["a", "b"]) cache.watch(key, () => seen.push([cache.peek("a").value, cache.peek("b").value]));
  for (const key of ["a", "b"]) cache.want(request(key));
  await tick();
  expect(flights.map(({ urls }) => [...urls].sort())).toEqual([["a", "b"]]);
  flights[0].answer(flights[0].urls.map(body));
  await tick();
  expect(seen).toEqual([["a", "b"], ["a", "b"]]);
  expect(cache.isIdle).toBe(true);
});

test("one that fails leaves the others alone", async () => {
  const { cache, flights, request } = setUp();
  for (const key of ["good", "bad"]) cache.want(request(key));
  await tick();
  flights[0].answer(flights[0].urls.map((url) => (url === "bad" ? new RequestFailed("no", 404, "") : body(url))));
  await tick();
  expect(cache.peek("good").value).toBe("good");
  expect(cache.peek("bad").problem?.message).toBe("no");
});

test("what is fetched ahead is given up for what is looked at, and can be asked for again", async () => {
  const { cache, flights, request } = setUp();
  cache.prefetch([request("ahead 1"), request("ahead 2"), request("ahead 1")]); // several panels ask for the same
  await tick();
  expect(flights.map(({ urls }) => urls)).toEqual([["ahead 1", "ahead 2"]]);
  expect(cache.isIdle).toBe(true);
  for (const key of ["now 1", "now 2"]) cache.want(request(key));
  await tick();
  expect(flights.map(({ signal }) => signal.aborted)).toEqual([true, false]);
  flights[0].answer(flights[0].urls.map(body)); // too late
  await tick();
  expect(cache.peek("ahead 1").value).toBe(null);
  flights[1].answer(flights[1].urls.map(body));
  await tick();
  for (const key of ["ahead 1", "ahead 2"]) cache.want(request(key));
  await tick();
  expect(flights).toHaveLength(3);
});

test("what is fetched ahead and then looked at is waited for, not asked for twice", async () => {
  const { cache, flights, request } = setUp();
  cache.prefetch([request("a"), request("b")]);
  await tick();
  cache.want(request("a"));
  cache.want(request("other"));
  await tick();
  expect([flights[0].signal.aborted, cache.isIdle, cache.peek("a").pending]).toEqual([false, false, true]);
  flights[0].answer(flights[0].urls.map(body));
  await tick();
  expect([cache.peek("a").value, cache.peek("b").value]).toEqual(["a", "b"]);
});

test("answers are taken apart where the head says", () => {
  const head = new TextEncoder().encode(
    JSON.stringify([
      { address: "a", status: 200, bytes: 3, headers: { "x-shape": "[3]" } },
      { address: "b", status: 404, bytes: 26, headers: {} },
      { address: "c%20d", status: 200, bytes: 8, headers: {} },
    ]).padEnd(196),
  );
  const whole = new Uint8Array(4 + head.length + 8 + 32 + 8);
  new DataView(whole.buffer).setUint32(0, head.length, true);
  whole.set(head, 4);
  whole.set([1, 2, 3], 200);
  whole.set(new TextEncoder().encode('{"error":"no","kind":"No"}'), 208);
  whole.fill(7, 240);
  const [[, first], [, second], [name, third]] = apart(whole.buffer);
  expect(name).toBe("c d");
  if (first instanceof RequestFailed || third instanceof RequestFailed) throw new Error("they did not fail");
  expect([[...first.data], first.header("X-Shape"), third.data.byteOffset]).toEqual([[1, 2, 3], "[3]", 240]);
  expect(second).toMatchObject({ message: "no", status: 404, kind: "No" });
});

test("what came with the page does not wait for what has to be asked for", async () => {
  const flights: (readonly string[])[] = [];
  const together = (urls: readonly string[]): Promise<BodyOrFailure[]> => {
    flights.push([...urls].sort());
    return new Promise(() => undefined);
  };
  const cache = new Cache(together, (url) => url.startsWith("given"));
  const { request } = setUp();
  for (const key of ["given 1", "far 1", "given 2", "far 2"]) cache.want(request(key));
  await tick();
  expect(flights.sort()).toEqual([["far 1", "far 2"], ["given 1", "given 2"]]);
});
