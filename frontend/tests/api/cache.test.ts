/** What was asked for is loaded once, newest first, and what failed or grew is asked for again at the right time. */
import { expect, test } from "vitest";
import { Cache, type Request } from "../../src/api/cache";
import { RequestFailed } from "../../src/api/client";

const tick = (): Promise<void> => new Promise((done) => setTimeout(done));

/** A server that answers when it is told to. */
function server() {
  const asked: string[] = [];
  const waiting = new Map<string, { answer: (value: unknown) => void; fail: (error: Error) => void }>();
  const request = (key: string): Request<unknown> => ({
    key,
    load: () =>
      new Promise((answer, fail) => {
        asked.push(key);
        waiting.set(key, { answer: (value) => answer({ value, bytes: 10 }), fail });
      }),
  });
  const answer = async (key: string, value: unknown = key): Promise<void> => {
    waiting.get(key)?.answer(value);
    await tick();
  };
  const fail = async (key: string, status: number): Promise<void> => {
    waiting.get(key)?.fail(new RequestFailed("no", status, ""));
    await tick();
  };
  return { asked, request, answer, fail };
}

test("two who want the same ask once, and both are told", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  let told = 0;
  cache.watch("a", () => told++);
  cache.watch("a", () => told++);
  cache.want(request("a"));
  cache.want(request("a"));
  await tick();
  expect([asked, cache.peek("a").pending, cache.isIdle]).toEqual([["a"], true, false]);
  await answer("a", 42);
  expect([cache.peek("a").value, cache.peek("a").pending, told, cache.isIdle]).toEqual([42, false, 2, true]);
  cache.want(request("a"));
  await tick();
  expect(asked).toEqual(["a"]);
});

test("a few are in flight, of those that wait the newest goes first", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  const keys = ["1", "2", "3", "4", "5", "6"];
  for (const key of keys) {
    cache.watch(key, () => undefined);
    cache.want(request(key));
    await tick();
  }
  expect(asked).toEqual(["1", "2", "3", "4"]);
  await answer("1");
  expect(asked).toEqual(["1", "2", "3", "4", "6"]);
});

test("what nobody looks at any more is not sent", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  for (const key of ["1", "2", "3", "4"]) cache.want(request(key));
  await tick();
  const stop = cache.watch("passed", () => undefined);
  cache.want(request("passed"));
  await tick();
  stop();
  await answer("1");
  expect(asked).not.toContain("passed");
  cache.watch("passed", () => undefined);
  cache.want(request("passed"));
  await tick();
  expect(asked).toContain("passed");
});

test("prefetching waits until nothing else is on its way", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  cache.watch("now", () => undefined);
  cache.want(request("now"));
  cache.prefetch(["x", "y", "z"].map(request));
  await tick();
  expect(asked).toEqual(["now"]);
  await answer("now");
  expect(asked).toEqual(["now", "x"]);
  expect(cache.isIdle).toBe(true);
  await answer("x");
  expect(asked).toEqual(["now", "x", "y"]);
});

test("what has grown is asked for again by those who look, with the old value meanwhile", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  cache.watch("seen", () => undefined);
  for (const key of ["seen", "unseen"]) cache.want(request(key));
  await tick();
  await answer("seen", "old");
  await answer("unseen", "old");
  cache.invalidate(() => true);
  await tick();
  expect(asked).toEqual(["unseen", "seen", "seen"]);
  expect(cache.peek("seen")).toMatchObject({ value: "old", pending: true });
  await answer("seen", "new");
  expect(cache.peek("seen")).toMatchObject({ value: "new", pending: false });
});

test("a refusal is remembered; a server that was gone is asked again when told so", async () => {
  const cache = new Cache();
  const { asked, request, fail } = server();
  for (const key of ["refused", "gone"]) {
    cache.watch(key, () => undefined);
    cache.want(request(key));
  }
  await tick();
  await fail("refused", 404);
  await fail("gone", 0);
  for (const key of ["refused", "gone"]) cache.want(request(key));
  await tick();
  expect(asked).toHaveLength(2);
  expect(cache.peek("refused").problem?.message).toBe("no");
  cache.retry();
  await tick();
  expect(asked.slice(2)).toEqual(["gone"]);
});

test("answers that came unasked are all there before anybody is told, and nothing of them is asked for", async () => {
  const cache = new Cache();
  const { asked, request, answer } = server();
  const seen: unknown[] = [];
  for (const key of ["a", "b"]) cache.watch(key, () => seen.push([cache.peek("a").value, cache.peek("b").value]));
  cache.want(request("a"));
  await tick();
  cache.fill([[request("a"), { value: 1, bytes: 8 }], [request("b"), { value: 2, bytes: 8 }]]);
  expect([seen, cache.isIdle]).toEqual([[[1, 2], [1, 2]], true]);
  cache.want(request("b"));
  await answer("a", "late");
  expect([asked, cache.peek("a").value]).toEqual([["a"], 1]);
});
