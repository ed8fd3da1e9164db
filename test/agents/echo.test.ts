import assert from "node:assert/strict";
import { test } from "node:test";
import { startTask } from "sluice/testing";
import echo, { echo as answer } from "../../agents/echo.ts";
import { readMessage } from "../../shared/wire/index.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const outcomeOf = (a2a: unknown) => answer(readMessage(a2a));

test("text comes back as text, whatever form it came in", () => {
  assert.deepEqual(outcomeOf("hi"), { text: "hi" });
  assert.deepEqual(outcomeOf({ kind: "text", text: "42" }), { text: "42" });
  const parts = [{ kind: "text", text: "a" }, { text: "b" }];
  assert.deepEqual(outcomeOf({ message: { parts } }), { text: "a\nb" });
});

test("everything else comes back as data, beside the text", () => {
  assert.deepEqual(outcomeOf({ parts: [{ data: { n: 1 } }, { text: "x" }] }), {
    text: "x",
    data: { n: 1 },
  });
  assert.deepEqual(outcomeOf([1, 2]), { data: [1, 2] });
  const file = { raw: "AA==", filename: "f", mediaType: "image/png" };
  assert.deepEqual(outcomeOf({ parts: [file, { data: 1 }] }), { data: [file, 1] });
});

test("a task is answered", async () => {
  const t = await startTask(echo, { text: "hi" });
  const { state, text } = await t.outcome();
  assert.deepEqual([state, text], ["TASK_STATE_COMPLETED", "hi"]);
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    await dieAtEachWrite({
      agent: echo,
      start: { text: "hi" },
      when,
      play: (task) => task.outcome(),
      eventsOf: (events) =>
        events.map(({ revision, kind, state, content }) => [revision, kind, state, content]),
    });
  });
