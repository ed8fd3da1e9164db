import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_JSON_DEPTH, memberSize, readJson } from "../../shared/wire/json.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const value = (text: string) => {
  const read = readJson(bytes(text));
  assert.ok(read.ok);
  return read.value.value;
};

test("any JSON is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) =>
      assert.deepEqual(value(JSON.stringify(json)), JSON.parse(JSON.stringify(json))),
    ),
  );
});

test("any bytes are JSON or not, and never throw", () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), fc.string().map(bytes)), (input) => {
      const read = readJson(input);
      if (read.ok) assert.deepEqual(read.value.value, JSON.parse(new TextDecoder().decode(input)));
    }),
  );
});

test("invalid UTF-8 is no JSON", () => {
  assert.deepEqual(readJson(Uint8Array.of(0x22, 0xff, 0x22)), { ok: false, reason: "body: expected UTF-8" });
  // A surrogate half as UTF-8, an overlong slash, a sequence that is cut off.
  assert.equal(readJson(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)).ok, false);
  assert.equal(readJson(Uint8Array.of(0x22, 0xc0, 0xaf, 0x22)).ok, false);
  assert.equal(readJson(Uint8Array.of(0x22, 0xe6, 0x97)).ok, false);
});

test("a byte order mark is no JSON, except inside a string", () => {
  assert.deepEqual(readJson(Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d)), {
    ok: false,
    reason: "body: expected JSON",
  });
  assert.equal(value('"\ufeff"'), "\ufeff");
});

test("an escaped half of a surrogate pair is read as U+FFFD, in keys too", () => {
  assert.equal(value('"\\ud83d"'), "\ufffd");
  assert.equal(value('"\\uDC4D\\uD83D"'), "\ufffd\ufffd");
  assert.equal(value('"\\ud83d\\ud83d\\udc4d!"'), "\ufffd👍!");
  assert.equal(value('"\\\\ud83d"'), "\\ud83d");
  assert.equal(value('"\\\\\\ud83d"'), "\\\ufffd");
  assert.deepEqual(value('{"\\udc4d":1}'), { "\ufffd": 1 });
});

test("no half of a surrogate pair is ever read", () => {
  const unit = fc.constantFrom("\\ud83d", "\\udc4d", "\\\\", "\\n", "u", "d83d", "👍");
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const read = value(`"${units.join("")}"`);
      assert.ok(typeof read === "string");
      assert.equal(read.isWellFormed(), true);
      assert.equal(read, JSON.parse(`"${units.join("")}"`).toWellFormed());
    }),
  );
});

test("nesting at its bound and one past it", () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  assert.equal(readJson(bytes(nested(MAX_JSON_DEPTH))).ok, true);
  assert.equal(readJson(bytes(nested(MAX_JSON_DEPTH + 1))).ok, false);
  assert.equal(readJson(bytes(nested(500_000))).ok, false);
  assert.equal(readJson(bytes(JSON.stringify(nested(2_000)))).ok, true);
});

test("a member's size is that of its bytes as sent", () => {
  assert.equal(memberSize('{"a":1,"payload": {"b" : [1, 2]} ,"c":"}"}', "payload"), '{"b" : [1, 2]}'.length);
  assert.equal(memberSize('{"payload":"é\\u0000"}', "payload"), 10);
  assert.equal(memberSize('{"payload":1,"payload":22}', "payload"), 2);
  assert.equal(memberSize('{"pay\\u006coad":333}', "payload"), 3);
  assert.equal(memberSize('{"a":{"payload":1}}', "payload"), 0);
  assert.equal(memberSize('{"a":"payload","b":[":",{}]}', "payload"), 0);
  assert.equal(memberSize("{}", "payload"), 0);
});

test("any member's size", () => {
  const members = fc.dictionary(fc.string(), fc.jsonValue({ depthSize: "small" }), { maxKeys: 5 });
  fc.assert(
    fc.property(members, fc.constantFrom(undefined, 1, "\t"), (object, space) => {
      for (const [name, member] of Object.entries(object)) {
        const size = memberSize(JSON.stringify(object, null, space), name);
        const compact = Buffer.byteLength(JSON.stringify(member));
        if (space === undefined) assert.equal(size, compact);
        else assert.ok(size >= compact);
      }
    }),
  );
});
