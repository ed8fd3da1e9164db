import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  MAX_PASSAGE,
  MAX_PASSAGES,
  mostFrequentOf,
  scoreOf,
  search,
  termsOf,
} from "../../../agents/parts/passages.ts";

test("a topic is looked for by its telling words", () => {
  assert.deepEqual(termsOf("What is a Lease, and who renews leases?"), ["lease", "renew"]);
  assert.deepEqual(termsOf("policies boxes status access axis its gas"), [
    "polic",
    "box",
    "status",
    "access",
    "axis",
    "gas",
  ]);
  assert.deepEqual(termsOf("to be or not to be"), ["to", "be", "or", "not"]);
  assert.deepEqual(termsOf("?!"), []);
});

test("a term stands for longer words, a short one for itself", () => {
  assert.equal(scoreOf("Leases are leased", ["lease"]), 12);
  assert.equal(scoreOf("a catalogue of cats and a cat", ["cat"]), 11);
  assert.equal(scoreOf("lease and beat", ["lease", "beat"]), 22);
  assert.equal(scoreOf("nothing", ["lease"]), 0);
});

test("paragraphs that bear on the terms are found with their line and what stands beside", () => {
  const text =
    "# Leases\n\nA lease lasts\na minute.\r\n\r\nNothing here.\n\nThe worker renews its lease each minute.";
  const { total, passages, beside } = search(text, ["lease"]);
  assert.equal(total, 3);
  assert.deepEqual(
    passages.map(({ line, text }) => [line, text]),
    [
      [1, "# Leases"],
      [3, "A lease lasts\na minute."],
      [8, "The worker renews its lease each minute."],
    ],
  );
  assert.deepEqual(beside, { minute: 2, lasts: 1, renews: 1, worker: 1 });
  const none = search(text, ["zebra"]);
  assert.deepEqual(none, { total: 0, passages: [], beside: {} });
});

test("only the best passages are kept, and of a long one its beginning", () => {
  const paragraphs = Array.from({ length: MAX_PASSAGES + 1 }, (_, n) => (n === 3 ? "lease" : "lease lease"));
  const { total, passages } = search(paragraphs.join("\n\n"), ["lease"]);
  assert.deepEqual([total, passages.length], [MAX_PASSAGES + 1, MAX_PASSAGES]);
  assert.ok(passages.every(({ text }) => text === "lease lease"));
  for (const [length, kept] of [
    [MAX_PASSAGE, MAX_PASSAGE],
    [MAX_PASSAGE + 1, MAX_PASSAGE],
  ]) {
    const [passage] = search("x".repeat(length ?? 0), ["xxxx"]).passages;
    assert.equal(passage?.text.length, kept);
  }
});

test("the words beside the topic count over all sources", () => {
  const found = [search("lease epoch beats", ["lease"]), search("lease epoch", ["lease"])];
  assert.deepEqual(mostFrequentOf(found, 2), [
    ["epoch", 2],
    ["beats", 1],
  ]);
});

test("any text can be searched for any topic", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (text, topic) => {
      const { total, passages } = search(text, termsOf(topic));
      assert.ok(passages.length <= total);
    }),
  );
});
