import assert from "node:assert/strict";
import { test } from "node:test";
import echo from "../../agents/echo.ts";
import { perform } from "./perform.ts";

const outcomeOf = async (a2a: unknown) => (await perform(echo, a2a)).outcome;

test("text comes back as text, whatever form it came in", async () => {
  assert.deepEqual(await outcomeOf("hi"), { text: "hi" });
  assert.deepEqual(await outcomeOf({ kind: "text", text: "42" }), { text: "42" });
  const parts = [{ kind: "text", text: "a" }, { text: "b" }];
  assert.deepEqual(await outcomeOf({ message: { parts } }), { text: "a\nb" });
});

test("everything else comes back as data, beside the text", async () => {
  assert.deepEqual(await outcomeOf({ parts: [{ data: { n: 1 } }, { text: "x" }] }), {
    text: "x",
    data: { n: 1 },
  });
  assert.deepEqual(await outcomeOf([1, 2]), { data: [1, 2] });
  const file = { raw: "AA==", filename: "f", mediaType: "image/png" };
  assert.deepEqual(await outcomeOf({ parts: [file, { data: 1 }] }), { data: [file, 1] });
});
