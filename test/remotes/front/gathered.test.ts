import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Gathered, ownPart } from "../../../shared/remotes/front/artifacts.ts";
import type { ToldArtifact } from "../../../shared/remotes/front/told.ts";
import { words } from "../../../shared/remotes/front/words.ts";
import { artifactIdOf } from "../../../shared/steps/artifacts.ts";

const piece = fc.record({
  id: fc.constantFrom("a", "b", "a b"),
  text: fc.string({ unit: "grapheme", maxLength: 5 }),
  append: fc.boolean(),
  /** Whether what is new is given out after it. */
  tell: fc.boolean(),
  /** Whether the worker dies then: the next one sees all of it at once. */
  dies: fc.boolean(),
});

/** The texts that a requester has in the end, by what they are called. */
function received(told: readonly ToldArtifact[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { as, parts } of told) {
    const text = parts.map((part) => ("text" in part ? part.text : "")).join("");
    texts.set(as, (texts.get(as) ?? "") + text);
  }
  return texts;
}

test("whatever comes in which pieces, and whoever dies: the last that is given out of each is what the remote has", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const there = new Map<string, string>();
      const told: ToldArtifact[] = [];
      const lastOf = new Map<string, string>();
      let gathered = new Gathered();
      const tell = () => {
        for (const of of gathered.news()) {
          gathered.gave(of);
          told.push(of);
          lastOf.set(of.id, of.as);
        }
      };
      for (const { id, text, append, tell: tells, dies } of pieces) {
        there.set(id, (append ? (there.get(id) ?? "") : "") + text);
        gathered.take({ id, parts: [{ text }], append, last: false });
        if (tells) tell();
        if (!dies) continue;
        gathered = new Gathered();
        for (const of of told) gathered.gave(of);
        for (const [whole, all] of there)
          gathered.take({ id: whole, parts: [{ text: all }], append: false, last: false });
      }
      tell();
      const texts = received(told);
      for (const [id, text] of there) {
        const as = lastOf.get(id);
        // An empty text is nothing that can be given out: what was there before stays.
        if (text !== "") assert.equal(texts.get(as ?? ""), text);
      }
      const names = new Set(texts.keys());
      assert.equal(new Set([...names].map(artifactIdOf)).size, names.size, "no two share an id");
    }),
  );
});

test("names are such that every step and every file can have them", () => {
  const named = (name: string) => {
    const gathered = new Gathered();
    gathered.take({ id: "1", name, parts: [{ data: 1 }], append: false, last: true });
    return gathered.news()[0]?.as;
  };
  assert.equal(named("x".repeat(100)), "x".repeat(100));
  assert.equal(named("x".repeat(101)), "x".repeat(100));
  assert.equal(named("../etc/passwd\u0007"), "..-etc-passwd-");
  assert.equal(named("æøå"), "artifact");
  assert.equal(named("remote/send#2"), "remote-send-2");
  assert.equal(named("data"), "data-2");
});

test("parts keep what can be kept of their labels", () => {
  const long = "x".repeat(256);
  assert.deepEqual(ownPart({ text: "a", mediaType: "text/markdown", filename: "a.md" }), {
    text: "a",
    mediaType: "text/markdown",
    filename: "a.md",
  });
  assert.deepEqual(ownPart({ text: "a", mediaType: "no type", filename: long }), { text: "a" });
  assert.deepEqual(ownPart({ raw: "AQI=" }), {
    bytes: Buffer.from([1, 2]),
    mediaType: "application/octet-stream",
  });
  assert.deepEqual(ownPart({ url: "https://a.example/x", mediaType: "image/png" }), {
    data: { url: "https://a.example/x", mediaType: "image/png" },
  });
});

test("words are cut, and hold nothing that a terminal would obey", () => {
  assert.equal(words("a\r\nb\u001b[2J\u200b\tc", 100), "a\nb[2J\tc");
  assert.equal(words("x".repeat(10), 10), "x".repeat(10));
  assert.equal(words("x".repeat(11), 10), `${"x".repeat(10)}…`);
});
