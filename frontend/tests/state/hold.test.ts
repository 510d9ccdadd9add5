/** A choice is drawn once: at once if everything is there, else when it has come, and never much later. */
import { beforeEach, expect, test, vi } from "vitest";
import { RequestFailed } from "../../src/api/client";
import type { Request } from "../../src/api/cache";
import { addAsker, hold } from "../../src/state/hold";
import { cache } from "../../src/state/resource";

const tick = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

/** A question that is answered, or refused, when somebody says so. */
function question(key: string) {
  let settle: { answer: (value: unknown) => void; refuse: () => void } | null = null;
  const load = (): Promise<{ value: unknown; bytes: number }> =>
    new Promise((done, fail) => {
      settle = {
        answer: (value) => done({ value, bytes: 1 }), refuse: () => fail(new RequestFailed("no", 404, "")),
      };
    });
  const request: Request<unknown> = { key, load };
  return {
    request,
    answer: async () => {
      settle?.answer(key);
      await tick();
    },
    refuse: async () => {
      settle?.refuse();
      await tick();
    },
  };
}

/** Asks for these from now on; ends with the test. */
let stops: (() => void)[] = [];
function asking(find: () => readonly Request<unknown>[]): void {
  stops.push(
    addAsker(() => {
      const requests = find();
      for (const request of requests) cache.want(request);
      return requests;
    }),
  );
}

beforeEach(() => {
  vi.useFakeTimers();
  for (const stop of stops) stop();
  stops = [];
});

test("what is there is drawn at once", () => {
  const draw = vi.fn();
  hold(draw, false);
  expect(draw).toHaveBeenCalledTimes(1);
});

test("what is not there is drawn once it has come, also if it is a refusal", async () => {
  const [a, b] = [question("hold a"), question("hold b")];
  asking(() => [a.request, b.request]);
  const draw = vi.fn();
  hold(draw, false);
  await tick();
  await a.answer();
  expect(draw).not.toHaveBeenCalled();
  await b.refuse();
  expect(draw).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1000);
  expect(draw).toHaveBeenCalledTimes(1);
});

test("what comes may lead to more, for which it waits, too", async () => {
  const [a, b] = [question("hold first"), question("hold then")];
  asking(() => (cache.peek("hold first").value ? [a.request, b.request] : [a.request]));
  const draw = vi.fn();
  hold(draw, false);
  await tick();
  await a.answer();
  expect(draw).not.toHaveBeenCalled();
  await b.answer();
  expect(draw).toHaveBeenCalledTimes(1);
});

test("nobody waits long, and another choice does not make it longer", async () => {
  const slow = question("hold slow");
  asking(() => [slow.request]);
  const draw = vi.fn();
  hold(draw, false);
  vi.advanceTimersByTime(40);
  hold(draw, false);
  expect(draw).not.toHaveBeenCalled();
  vi.advanceTimersByTime(11);
  expect(draw).toHaveBeenCalledTimes(1);
  await tick();
  await slow.answer();
  expect(draw).toHaveBeenCalledTimes(1);
});

test("what a hand moves is drawn at once, and with it what was waiting", async () => {
  const slow = question("hold hand");
  asking(() => [slow.request]);
  const draw = vi.fn();
  hold(draw, false);
  hold(draw, true);
  expect(draw).toHaveBeenCalledTimes(1);
  hold(draw, true);
  expect(draw).toHaveBeenCalledTimes(2);
});
