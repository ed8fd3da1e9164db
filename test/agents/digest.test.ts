import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { startTask } from "sluice/testing";
import * as z from "zod";
import digest, { countWords, materialOf, measure, shapeOfJson, shapeOfText } from "../../agents/digest.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const report = z.looseObject({
  sha256: z.string(),
  bytes: z.number(),
  words: z.unknown(),
  shape: z.unknown(),
});

test("a text is measured, counted and described in visible steps", async () => {
  const text = "The cat saw the dog.\nThe dog ran.\n\nEnd";
  const t = await startTask(digest, { text, policy: { statusEverySec: 0 } });
  const outcome = await t.outcome();
  assert.deepEqual(
    t.steps.map(({ name }) => name),
    ["measure", "words", "structure", "summary", "report"],
  );
  assert.equal(t.events.filter(({ kind }) => kind === "status").length, 4);
  const sha256 = createHash("sha256").update(text).digest("hex");
  assert.match(outcome.text, /^Text of 2 paragraphs; 38 bytes, 4 lines, 9 words, 6 different\.$/m);
  assert.match(
    outcome.text,
    new RegExp(`Most frequent: the \\(3\\), dog \\(2\\), .*\\nsha256 ${sha256}$`, "s"),
  );
  const [artifact] = outcome.artifacts;
  assert.equal(artifact?.name, "report.json");
  const given = report.parse(JSON.parse(artifact.text));
  assert.equal(given.sha256, sha256);
  assert.deepEqual(given.shape, { kind: "text", paragraphs: 2, longestLine: 20 });
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
  for (const asked of [{ data: json }, { text: JSON.stringify(json) }]) {
    const { text, artifacts } = await (await startTask(digest, asked)).outcome();
    assert.match(text, /^JSON object, 3 levels deep, 4 different keys;/);
    assert.deepEqual(report.parse(JSON.parse(artifacts[0]?.text ?? "")).shape, shape);
  }
});

test("what only looks like JSON, and a bare number, are texts", () => {
  for (const text of ["{not json", "42", "", "[x"]) {
    assert.deepEqual(materialOf({ parts: [{ text }] }), { kind: "text", text });
  }
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    await dieAtEachWrite({
      agent: digest,
      start: { text: "some text" },
      when,
      play: (t) => t.outcome(),
      eventsOf: (events) =>
        events.filter(({ kind }) => kind !== "status").map(({ kind, content }) => [kind, content]),
    });
  });

test("any text and any JSON can be digested", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
      assert.equal((await (await startTask(digest, { text })).outcome()).state, "TASK_STATE_COMPLETED");
      const { total, distinct } = countWords(text);
      assert(distinct <= total);
      assert.equal(measure(text).characters, [...text].length);
    }),
    { numRuns: 50 },
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (json) => {
      const { state } = await (await startTask(digest, { data: json })).outcome();
      assert.equal(state, "TASK_STATE_COMPLETED");
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
  const { text } = await (await startTask(digest, { text: "a".repeat(1_000_000) })).outcome();
  assert(text.length > 0 && text.length < 300);
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
