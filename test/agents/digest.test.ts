import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import digest, { countWords, materialOf, measure, shapeOfJson, shapeOfText } from "../../agents/digest.ts";
import { perform } from "./perform.ts";

const report = z.looseObject({
  sha256: z.string(),
  bytes: z.number(),
  words: z.unknown(),
  shape: z.unknown(),
});

test("a text is measured, counted and described in visible steps", async () => {
  const text = "The cat saw the dog.\nThe dog ran.\n\nEnd";
  const { outcome, steps, statuses, artifacts } = await perform(digest, { kind: "text", text });
  assert.deepEqual(steps, ["measure", "words", "structure", "summary"]);
  assert.equal(statuses.length, 4);
  const sha256 = createHash("sha256").update(text).digest("hex");
  assert.match(outcome.text ?? "", /^Text of 2 paragraphs; 38 bytes, 4 lines, 9 words, 6 different\.$/m);
  assert.match(
    outcome.text ?? "",
    new RegExp(`Most frequent: the \\(3\\), dog \\(2\\), .*\\nsha256 ${sha256}$`, "s"),
  );
  const [artifact] = artifacts;
  assert.equal(artifact?.name, "report");
  const parts = z.object({ data: report, filename: z.literal("report.json") }).parse(artifact?.parts);
  assert.equal(parts.data.sha256, sha256);
  assert.deepEqual(parts.data.shape, { kind: "text", paragraphs: 2, longestLine: 20 });
});

test("JSON is described by its shape, as data or as text", async () => {
  const json = {
    list: [
      { id: 1, name: "x" },
      { id: 2, name: null },
    ],
    on: true,
  };
  const shape = {
    kind: "json",
    type: "object",
    depth: 3,
    types: { object: 3, array: 1, number: 2, string: 1, null: 1, boolean: 1 },
    distinctKeys: 4,
    topLevelKeys: ["list", "on"],
    keys: [
      { name: "id", count: 2 },
      { name: "name", count: 2 },
      { name: "list", count: 1 },
      { name: "on", count: 1 },
    ],
  };
  for (const a2a of [{ parts: [{ data: json }] }, JSON.stringify(json)]) {
    const { outcome, artifacts } = await perform(digest, a2a);
    assert.match(outcome.text ?? "", /^JSON object, 3 levels deep, 4 different keys;/);
    assert.deepEqual(z.object({ data: report }).parse(artifacts[0]?.parts).data.shape, shape);
  }
});

test("what only looks like JSON, and a bare number, are texts", () => {
  for (const text of ["{not json", "42", "", "[x"]) {
    assert.deepEqual(materialOf({ parts: [{ text }] }), { kind: "text", text });
  }
});

test("stored steps are not run again", async () => {
  const stored = new Map<string, unknown>();
  const first = await perform(digest, "some text", { stored });
  const again = await perform(digest, "some text", { stored });
  assert.deepEqual(again.outcome, first.outcome);
  stored.set("words", { total: 99, distinct: 1, top: [] });
  assert.match(
    (await perform(digest, "some text", { stored: new Map([["words", stored.get("words")]]) })).outcome
      .text ?? "",
    /99 words/,
  );
});

test("any text and any JSON can be digested", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
      await perform(digest, text);
      const { total, distinct } = countWords(text);
      assert(distinct <= total);
      assert.equal(measure(text).characters, [...text].length);
    }),
    { numRuns: 50 },
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (json) => {
      await perform(digest, { parts: [{ data: json }] });
    }),
    { numRuns: 50 },
  );
});

test("long words and keys are shown by their beginning", async () => {
  const [longest, tooLong] = ["𝒙".repeat(64), "𝒙".repeat(65)];
  assert.deepEqual(countWords(`${longest} ${tooLong}`).top, [
    { name: longest, count: 1 },
    { name: `${"𝒙".repeat(63)}…`, count: 1 },
  ]);
  const { topLevelKeys } = shapeOfJson({ [longest]: 1, ["k".repeat(1_000_000)]: 2 });
  assert.deepEqual(topLevelKeys, [longest, `${"k".repeat(63)}…`]);
  const { outcome } = await perform(digest, "a".repeat(1_000_000));
  assert((outcome.text?.length ?? 0) < 300);
});

test("JSON deeper than the call stack, and texts of the largest message", () => {
  const depth = 100_000;
  const { depth: found } = shapeOfJson(JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`));
  assert.equal(found, depth);
  const text = "word ".repeat(209_715);
  assert.equal(countWords(text).total, 209_715);
  assert.equal(measure(text).bytes, 1_048_575);
  assert.deepEqual(shapeOfText(""), { kind: "text", paragraphs: 0, longestLine: 0 });
});
