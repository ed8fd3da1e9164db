import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  acceptedEvent,
  cutToFit,
  eventSize,
  jsonLength,
  MAX_EVENT_BYTES,
  resultEvent,
} from "../../shared/wire/index.ts";

/** Code units of every kind: escaped ones, two to four bytes long, halves of pairs alone and together. */
const unit = fc.oneof(
  fc.constantFrom(
    '"',
    "\\",
    "\n",
    "\u0000",
    "\u001f",
    "\u007f",
    "é",
    "日",
    "👩‍👩‍👧",
    "\ud800",
    "\udc00",
    "\u2028",
  ),
  fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
);
const text = fc.array(unit, { maxLength: 60 }).map((units) => units.join(""));

test("a cut text fits, and one code point more would not", () => {
  fc.assert(
    fc.property(text, fc.nat(300), (whole, budget) => {
      const cut = cutToFit(whole, budget);
      assert.ok(whole.startsWith(cut));
      assert.ok(jsonLength(cut) <= budget);
      if (cut === whole) return;
      const [next = ""] = whole.slice(cut.length);
      assert.ok(jsonLength(cut + next) > budget);
    }),
    { numRuns: 500 },
  );
});

test("a pair of surrogates is never split", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(60), (whole, budget) => {
      assert.equal(cutToFit(whole, budget).isWellFormed(), true);
    }),
  );
  assert.equal(cutToFit("ab👍", 5), "ab");
  assert.equal(cutToFit("ab👍", 6), "ab👍");
});

test("lone surrogates count as the escapes that JSON makes of them", () => {
  assert.equal(jsonLength("\ud83d"), 6);
  assert.equal(cutToFit("a\ud83d", 6), "a");
  assert.equal(cutToFit("a\ud83d", 7), "a\ud83d");
  assert.equal(cutToFit("\udc4d\ud83d", 11), "\udc4d");
});

test("a text of which every character is escaped", () => {
  const text = "\u0001".repeat(1_000);
  assert.equal(jsonLength(text), 6_000);
  assert.equal(cutToFit(text, 5_999).length, 999);
  assert.equal(cutToFit(text, 6_000).length, 1_000);
});

test("nothing fits into nothing", () => {
  assert.equal(cutToFit("a", 0), "");
  assert.equal(cutToFit("", 0), "");
  assert.equal(cutToFit("a", -1), "");
});

const task = { taskId: "task_1", messageId: "msg_1", from: "adam", to: "acme-support" };

test("an event's size is its subject, its headers and its body in bytes", () => {
  const event = acceptedEvent(task, "2026-08-01T12:00:00Z");
  const headers = `NATS/1.0\r\nNats-Msg-Id: ${event.msgId}\r\n\r\n`;
  assert.equal(eventSize(event), event.subject.length + headers.length + event.body.length);
  assert.equal(
    eventSize({ subject: "s", msgId: "m", body: "é" }) - eventSize({ subject: "s", msgId: "m", body: "" }),
    2,
  );
});

test("a result's text can be cut to its bound exactly, whatever it is made of", () => {
  const result = (content: string) =>
    resultEvent(
      task,
      { revision: 2, state: "TASK_STATE_COMPLETED", content, metrics: {} },
      "2026-08-01T12:00:00Z",
    );
  const budget = Math.floor((MAX_EVENT_BYTES - eventSize(result("x")) + 2) / 2);
  for (const character of ["x", '"', "\u0001", "日", "👍"]) {
    const content = cutToFit(character.repeat(1_100_000), budget);
    const size = eventSize(result(content));
    assert.ok(size <= MAX_EVENT_BYTES);
    assert.ok(size > MAX_EVENT_BYTES - 2 * jsonLength(character) - 2);
  }
});
