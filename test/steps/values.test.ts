import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { artifactIdOf, encodeArtifact, MAX_ARTIFACT_BYTES } from "../../shared/steps/artifacts.ts";
import { ArtifactError, NotJsonError } from "../../shared/steps/errors.ts";
import { readInput } from "../../shared/steps/input.ts";
import { fromJson, toJson } from "../../shared/steps/json.ts";
import { readMessage } from "../../shared/wire/index.ts";

const TASK = "task_8463c7c504e9c3d38998774d";

describe("step results", () => {
  test("come back as JSON makes them", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepEqual(fromJson(toJson(value, "it")), JSON.parse(JSON.stringify(value)));
      }),
    );
    assert.equal(fromJson(toJson(undefined, "it")), undefined);
  });

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const [what, value] of [
    ["a bigint", { deep: { n: 1n } }],
    ["a function", { call: () => {} }],
    ["a symbol", [Symbol("x")]],
    ["NaN", { ratio: Number.NaN }],
    ["a cycle", cycle],
    ["a toJSON that throws", { toJSON: () => assert.fail("no") }],
  ] as const)
    test(`that JSON cannot hold are refused: ${what}`, () => {
      assert.throws(
        () => toJson(value, "step “x”"),
        (error: unknown) =>
          error instanceof NotJsonError && error.message.startsWith("step “x”: expected what JSON"),
      );
    });
});

describe("artifacts", () => {
  test("have the digest and size of their bytes, and the wire's key", () => {
    const { ref, bytes } = encodeArtifact(TASK, "report", { text: "hello\n", filename: "report.txt" });
    assert.equal(ref.digest, `sha256:${createHash("sha256").update(bytes).digest("hex")}`);
    assert.equal(ref.sizeBytes, 6);
    assert.equal(ref.key, `tasks/${TASK}/report/report.txt`);
  });

  test("of several parts are one object", () => {
    const { bytes, ref } = encodeArtifact(TASK, "log", [{ text: "one" }, { text: "two" }]);
    assert.equal(Buffer.from(bytes).toString(), "one\ntwo");
    assert.equal(ref.mediaType, "text/plain");
    const mixed = encodeArtifact(TASK, "mixed", [{ text: "one" }, { data: { n: 1 } }]);
    assert.deepEqual(JSON.parse(Buffer.from(mixed.bytes).toString()), {
      parts: [{ text: "one" }, { data: { n: 1 } }],
    });
  });

  test("take an id out of any name with a letter or digit in it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        if (!/[A-Za-z0-9_]/.test(name)) return void assert.throws(() => artifactIdOf(name), ArtifactError);
        assert.match(artifactIdOf(name), /^[A-Za-z0-9_-]{1,128}$/);
      }),
    );
  });

  test("have a largest size", () => {
    const bytes = (length: number) => ({
      bytes: Buffer.alloc(length),
      mediaType: "application/octet-stream",
    });
    assert.equal(encodeArtifact(TASK, "big", bytes(MAX_ARTIFACT_BYTES)).ref.sizeBytes, MAX_ARTIFACT_BYTES);
    assert.throws(() => encodeArtifact(TASK, "big", bytes(MAX_ARTIFACT_BYTES + 1)), ArtifactError);
    assert.throws(() => encodeArtifact(TASK, "none", []), ArtifactError);
  });
});

describe("a task's input", () => {
  const read = (schema: z.ZodType, a2a: unknown) => readInput(schema, readMessage(a2a));
  const parts = (...list: unknown[]) => ({ message: { parts: list } });

  test("is the text for a string schema, however it is wrapped", async () => {
    for (const schema of [
      z.string(),
      z.string().optional(),
      z.string().trim().min(1),
      z.string().default("x"),
    ])
      assert.deepEqual(await read(schema, { kind: "text", text: "hello" }), { ok: true, value: "hello" });
    assert.deepEqual(await read(z.enum(["a", "b"]), "a"), { ok: true, value: "a" });
    const two = parts({ kind: "text", text: "a" }, { text: "b" });
    assert.deepEqual(await read(z.string(), two), { ok: true, value: "a\nb" });
  });

  test("is the first data part otherwise, or the text as JSON", async () => {
    const schema = z.object({ n: z.number() });
    assert.deepEqual(await read(schema, parts({ text: "x" }, { data: { n: 3 } })), {
      ok: true,
      value: { n: 3 },
    });
    assert.deepEqual(await read(schema, '{"n":4}'), { ok: true, value: { n: 4 } });
  });

  test("that does not fit is an error naming the field", async () => {
    const wrong = await read(z.object({ a: z.object({ n: z.number() }) }), '{"a":{"n":"x"}}');
    assert.ok(!wrong.ok);
    assert.equal(wrong.field, "a.n");
    assert.match(wrong.problem, /number/);
    const text = await read(z.object({ n: z.number() }), "no JSON");
    assert.ok(!text.ok);
    assert.equal(text.field, "");
    assert.match(text.problem, /its text is no JSON/);
    const scalar = await read(z.number().optional(), "no JSON");
    assert.ok(!scalar.ok);
    assert.doesNotMatch(scalar.problem, /no JSON/);
  });

  test("that its schema throws at is an error naming it, not the worker's end", async () => {
    const transform = z.string().transform((text) => JSON.parse(text));
    const refine = z.string().refine(() => assert.fail("refine broke"));
    for (const schema of [transform, refine]) {
      const wrong = await read(schema, "no JSON");
      assert.ok(!wrong.ok);
      assert.match(wrong.problem, /JSON|refine broke/);
    }
  });
});
