import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelMessage } from "ai";
import { messagesOf } from "../../../agents/parts/transcript.ts";

const turn = (text: string): ModelMessage[] => [
  { role: "assistant", content: text },
  { role: "user", content: "go on" },
];
const turns = [turn("one"), turn("two"), turn("three")];
const sizes = turns.map((of) => JSON.stringify(of).length);
const all = "task".length + sizes.reduce((sum, size) => sum + size, 0);

test("the task comes first, and all turns for which there is room", () => {
  assert.deepEqual(messagesOf({ task: "task", turns }, all), [
    { role: "user", content: "task" },
    ...turns.flat(),
  ]);
  assert.deepEqual(messagesOf({ task: "task", turns: [] }, 1), [{ role: "user", content: "task" }]);
});

test("one character less, and the oldest turn is left out whole", () => {
  assert.deepEqual(messagesOf({ task: "task", turns }, all - 1), [
    { role: "user", content: "task\n\n(1 earlier turns are left out here.)" },
    ...turns.slice(1).flat(),
  ]);
});

test("the newest turn is always there", () => {
  assert.deepEqual(messagesOf({ task: "task", turns }, 1).slice(1), turns[2]);
});
