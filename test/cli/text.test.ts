import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { table } from "../../cli/table.ts";
import { clean, cleanLine, durationText, jsonLine, sizeText, wantsColour } from "../../cli/text.ts";

const anyText = fc.string({ unit: "binary" });

test("clean lets no control character and no change of direction through", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.doesNotMatch(clean(text), /(?![\n\t])\p{Cc}|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u);
    }),
  );
  assert.equal(clean("\u001b[31mred\u001b[0m\ttab\r\nnext\u0007\u009b2J"), "red\ttab\nnext");
  assert.equal(clean("plain ünïcode 👩‍🚀"), "plain ünïcode 👩‍🚀");
});

test("cleanLine is one line of at most the characters asked for", () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 50 }), (text, max) => {
      const line = cleanLine(text, max);
      assert.doesNotMatch(line, /[\n\t]/);
      assert([...line].length <= max);
    }),
  );
  assert.equal(cleanLine(" a\n b ", 3), "a b");
  assert.equal(cleanLine("abcd", 3), "ab…");
});

test("jsonLine is one safe line that reads back the same", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const line = jsonLine({ text });
      assert.doesNotMatch(line, /\p{Cc}|[\u2028-\u202E]/u);
      assert.deepEqual(JSON.parse(line), { text });
    }),
  );
});

test("sizes", () => {
  const sizes = [0, 1, 999, 1_000, 999_949, 1_000_000, 2e9].map(sizeText);
  assert.deepEqual(sizes, ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "2.0 GB"]);
});

test("durations", () => {
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const lengths = [
    0,
    12,
    999,
    1_000,
    59_999,
    minute,
    minute + 3_000,
    hour,
    2 * hour + 5 * minute,
    day,
    9 * day + hour,
  ];
  assert.deepEqual(lengths.map(durationText), [
    "0 ms",
    "12 ms",
    "999 ms",
    "1.0 s",
    "59.9 s",
    "1 min",
    "1 min 3 s",
    "1 h",
    "2 h 5 min",
    "1 d",
    "9 d 1 h",
  ]);
});

test("colours only on a terminal, never under NO_COLOR or on a dumb one", () => {
  assert.equal(wantsColour(true, {}), true);
  assert.equal(wantsColour(false, { FORCE_COLOR: "1", CI: "1" }), false);
  assert.equal(wantsColour(true, { NO_COLOR: "1" }), false);
  assert.equal(wantsColour(true, { NO_COLOR: "" }), true);
  assert.equal(wantsColour(true, { TERM: "dumb" }), false);
});

test("a table's columns are as wide as they must be", () => {
  assert.deepEqual(table(["A", "LONG"], [["abc", "x"], ["d"]]), ["A    LONG", "abc  x", "d"]);
});
