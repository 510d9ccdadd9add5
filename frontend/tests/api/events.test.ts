import { expect, test } from "vitest";
import { tell, type Listener } from "../../src/api/events";

function heard(...events: string[]): [string, unknown][] {
  const found: [string, unknown][] = [];
  const note = (name: string) => (news: unknown) => void found.push([name, news]);
  const listener = Object.fromEntries(
    ["trial", "catalog", "findings", "views", "reachable"].map((name) => [name, note(name)]),
  ) as unknown as Listener;
  for (const event of events) tell(event, listener);
  return found;
}

test("an event is told to whom it is about", () => {
  expect(heard('event: trial\ndata: {"trial": "a"}', 'data: {"x": 1}\nevent: views')).toEqual([
    ["trial", { trial: "a" }], ["views", { x: 1 }],
  ]);
});

test("comments and unknown events say nothing", () => {
  expect(heard(": still there", "event: other\ndata: {}", "event: trial")).toEqual([]);
});
