import assert from "node:assert/strict";
import { test } from "node:test";
import { endText, eventLine, labelWidth } from "../../cli/render.ts";
import { table } from "../../cli/table.ts";
import { colours } from "../../cli/text.ts";
import { nearest } from "../../shared/config/nearest.ts";
import type { TaskEvent } from "../../shared/wire/index.ts";

const plain = colours(false);
const event = (of: Partial<TaskEvent>): TaskEvent => ({
  kind: "status",
  from: "acme-echo",
  to: "acme-cli",
  taskKey: "task_1",
  messageId: "m1",
  revision: 2,
  state: "TASK_STATE_WORKING",
  content: "",
  error: null,
  ...of,
});

test("two spaces at least stand between a state and its text", () => {
  for (const [state, line] of [
    ["TASK_STATE_WORKING", "working    text"],
    ["TASK_STATE_COMPLETED", "completed  text"],
    ["TASK_STATE_INPUT_REQUIRED", "input required  text"],
  ] as const)
    assert.equal(eventLine(event({ state, content: "text" }), plain), line);
});

test("the texts of a task's events stand below each other, however long a state's name is", () => {
  const events = [
    event({ kind: "accepted" }),
    event({ content: "text" }),
    event({ state: "TASK_STATE_AUTH_REQUIRED", content: "May I?" }),
  ];
  const width = labelWidth(events);
  assert.deepEqual(
    events.map((of) => eventLine(of, plain, width)),
    ["accepted       task_1", "working        text", "auth required  May I?"],
  );
  assert.equal(labelWidth([event({})]), "completed".length);
});

test("an error is not told twice", () => {
  const ended = (state: TaskEvent["state"], code: string, message: string) =>
    endText(event({ state, error: { code, message } }), plain);
  assert.equal(ended("TASK_STATE_CANCELED", "canceled", "cancel requested"), "canceled   cancel requested");
  assert.equal(ended("TASK_STATE_CANCELED", "canceled", "canceled: why"), "canceled   why");
  assert.equal(ended("TASK_STATE_CANCELED", "canceled", ""), "canceled");
  // As a task that is erased tells it.
  assert.equal(ended("TASK_STATE_REJECTED", "overloaded", "overloaded"), "rejected   overloaded");
  assert.equal(ended("TASK_STATE_FAILED", "internal", "FatalError: no way"), "failed     internal: no way");
  assert.equal(ended("TASK_STATE_FAILED", "internal", "RangeError: 7"), "failed     internal: RangeError: 7");
});

test("a table is cut to a width, if there is one", () => {
  const of = (width?: number) => table(["A", "B"], [["one", "two three"]], width);
  assert.deepEqual(of(), ["A    B", "one  two three"]);
  assert.deepEqual(of(14), of());
  assert.deepEqual(of(13), ["A    B", "one  two thr…"]);
});

test("a mistyped name finds the nearest one", () => {
  const names = ["digest", "echo", "exec"];
  for (const [typed, meant] of [
    ["digset", "digest"],
    ["diges", "digest"],
    ["ecko", "echo"],
    ["weather", undefined],
    ["d", undefined],
    ["eeee", undefined],
  ] as const)
    assert.equal(nearest(typed, names)[0], meant, typed);
});
