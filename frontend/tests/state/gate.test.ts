import { expect, test, vi } from "vitest";
import { Gate } from "../../src/state/gate";

function source() {
  const calls = new Set<() => void>();
  const watch = (call: () => void) => {
    calls.add(call);
    return () => void calls.delete(call);
  };
  return { watch, calls, tell: () => [...calls].forEach((call) => call()) };
}

test("an open gate lets everything through", () => {
  const { watch, tell } = source();
  const heard = vi.fn();
  new Gate().through(watch)(heard);
  tell();
  expect(heard).toHaveBeenCalledTimes(1);
});

test("behind a closed gate nobody watches; when it opens, everybody looks once and watches again", () => {
  const { watch, calls, tell } = source();
  const gate = new Gate();
  const heard = vi.fn();
  gate.through(watch)(heard);
  gate.set(false);
  expect(calls.size).toBe(0);
  tell();
  expect(heard).not.toHaveBeenCalled();
  gate.set(true);
  expect(heard).toHaveBeenCalledTimes(1);
  tell();
  expect(heard).toHaveBeenCalledTimes(2);
});

test("whoever stops watching is not called when the gate opens", () => {
  const { watch, calls } = source();
  const gate = new Gate(false);
  const heard = vi.fn();
  const stop = gate.through(watch)(heard);
  stop();
  gate.set(true);
  expect(heard).not.toHaveBeenCalled();
  expect(calls.size).toBe(0);
});

test("setting a gate to what it is does nothing", () => {
  const gate = new Gate();
  const door = { open: vi.fn(), close: vi.fn() };
  gate.add(door);
  gate.set(true);
  expect(door.open).not.toHaveBeenCalled();
  gate.set(false);
  gate.set(false);
  expect(door.close).toHaveBeenCalledTimes(1);
});
