/** What comes with the page answers the questions that will be asked. */
import { afterEach, expect, test, vi } from "vitest";
import { givenAnswers } from "../../src/api/given";
import { askCatalog, askLayout, askTrial } from "../../src/api/requests";
import { beginStart, endStart } from "../../src/api/start";

/** As the server puts several answers together. */
function together(parts: readonly (readonly [string, number, unknown])[]): ArrayBuffer {
  const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
  const bodies = parts.map(([, , body]) => encode(body));
  const head = encode(
    parts.map(([address, status], i) => ({ address, status, bytes: bodies[i].length, headers: {} })),
  );
  const headBytes = Math.ceil((head.length + 4) / 8) * 8 - 4;
  const size = bodies.reduce((sum, body) => sum + Math.ceil(body.length / 8) * 8, 4 + headBytes);
  const whole = new Uint8Array(size).fill(32);
  new DataView(whole.buffer).setUint32(0, headBytes, true);
  whole.set(head, 4);
  let at = 4 + headBytes;
  for (const body of bodies) {
    whole.set(body, at);
    at += Math.ceil(body.length / 8) * 8;
  }
  return whole.buffer;
}

afterEach(() => {
  endStart();
  vi.unstubAllGlobals();
});

async function given(parts: readonly (readonly [string, number, unknown])[]) {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(together(parts))));
  return new Promise<ReturnType<typeof givenAnswers>>((done) => {
    beginStart((addresses) => done(givenAnswers(addresses)));
  });
}

test("every answer finds its question; a refusal and what nobody asks for are left alone", async () => {
  const found = await given([
    ["catalog", 200, { root: "here" }], ["trials/a%20b", 200, { name: "a b" }], ["trials/a%20b/layout", 200, { pins: {} }],
    ["trials/a%20b/modules", 404, { error: "none", kind: "" }], ["trials/a%20b/nothing", 200, {}],
  ]);
  const asked = found.map(([request]) => request.key);
  expect(asked).toEqual([askCatalog.key, askTrial("a b").key, askLayout("a b").key]);
  expect(found.map(([, answer]) => answer.value)).toEqual([{ root: "here" }, { name: "a b" }, { pins: {} }]);
});

test("a name that reads like an address is not taken for another trial", async () => {
  expect(await given([["trials/a%3Fb", 200, { name: "a?b" }]])).toEqual([]);
});
