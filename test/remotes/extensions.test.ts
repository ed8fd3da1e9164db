import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readExtensions } from "../../shared/remotes/extensions.ts";
import { BLAST_RADII, HITL_MODES } from "../../shared/remotes/hitl/scales.ts";

const BASE = "https://proto-labs.ai/a2a/ext";
const declared = (name: string, skills?: unknown, base = BASE) => ({
  uri: `${base}/${name}`,
  required: false,
  params: { skills },
});

test("what a card's extensions say, as typed values", () => {
  const { extensions, notes } = readExtensions([
    declared("hitl-mode-v1", {
      deploy: { mode: "gated", reviewer: "operator" },
      merge: { mode: "veto", vetoTtlMs: 120_000, note: "n".repeat(2_000) },
    }),
    declared("blast-v1", { deploy: { radius: "public", note: "prod" } }),
    { uri: `${BASE}/cost-v1`, required: true },
    { uri: `${BASE}/confidence-v1`, required: false },
    { uri: `${BASE}/effect-domain-v1`, required: false },
    { uri: "urn:somebody:else", required: true },
  ]);
  assert.deepEqual(notes, []);
  assert.deepEqual(extensions.hitl, [
    { skill: "deploy", mode: "gated", reviewer: "operator" },
    { skill: "merge", mode: "veto", vetoTtlMs: 120_000, note: "n".repeat(1_000) },
  ]);
  assert.deepEqual(extensions.blast, [{ skill: "deploy", radius: "public", note: "prod" }]);
  assert.deepEqual(extensions.required, [`${BASE}/cost-v1`, "urn:somebody:else"]);
  assert.equal(extensions.uris.length, 6);
  const { cost, confidence, worldstateDelta, toolCall, trace } = extensions;
  assert.deepEqual([cost, confidence, worldstateDelta, toolCall, trace], [true, true, true, false, false]);
});

test("entries that are not as expected count as the strictest, one by one, and are noted without their text", () => {
  const { extensions, notes } = readExtensions([
    declared("hitl-mode-v1", {
      a: { mode: "gated" },
      hunter2: { mode: "whatever" },
      b: { mode: "veto", vetoTtlMs: 0 },
      c: "gated",
      __proto: { mode: "compound" },
    }),
    declared("blast-v1", undefined),
    declared("blast-v1", { a: { radius: "self" }, b: { radius: "small" } }, "https://protolabs.ai/a2a/ext"),
    declared("hitl-mode-v1", { a: { mode: "autonomous" } }),
  ]);
  assert.deepEqual(extensions.hitl, [
    { skill: "a", mode: "gated" },
    { skill: "hunter2", mode: "gated" },
    { skill: "b", mode: "gated" },
    { skill: "c", mode: "gated" },
    { skill: "__proto", mode: "compound" },
  ]);
  assert.deepEqual(
    extensions.blast,
    [
      { skill: "a", radius: "self" },
      { skill: "b", radius: "public" },
    ],
    "the older address of the extension",
  );
  assert.deepEqual(extensions.unread, ["blast-v1"]);
  assert.deepEqual(notes, [
    "extensions[1] (blast-v1): every skill counts as public: expected params.skills to be an object by the skills' ids",
    "extensions[0] (hitl-mode-v1): entry 2 counts as gated: its mode is not as expected",
    "extensions[0] (hitl-mode-v1): entry 3 counts as gated: its vetoTtlMs is not as expected",
    "extensions[0] (hitl-mode-v1): entry 4 counts as gated: its value is not as expected",
    "hitl-mode-v1: a skill that is told twice counts as it is told first",
    "extensions[2] (blast-v1): entry 2 counts as public: its radius is not as expected",
  ]);
});

test("params that cannot be read are noted as a whole, and those that are absent declare nothing", () => {
  const of = (params: unknown, name = "hitl-mode-v1") =>
    readExtensions([{ uri: `${BASE}/${name}`, required: false, params }]);
  for (const nothing of [undefined, null, { skills: {} }]) {
    const { extensions, notes } = of(nothing);
    assert.deepEqual([extensions.unread, extensions.hitl, notes], [[], [], []]);
  }
  for (const slip of [{}, { skills: null }, { skills: [{ id: "deploy", mode: "gated" }] }, [], "gated", 0]) {
    const { extensions, notes } = of(slip);
    assert.deepEqual(extensions.unread, ["hitl-mode-v1"], JSON.stringify(slip));
    assert.match(notes.join(), /^extensions\[0\] \(hitl-mode-v1\): every skill counts as gated: expected /);
  }
  const many = (count: number) =>
    of(
      {
        skills: Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, { radius: "self" }])),
      },
      "blast-v1",
    ).extensions;
  assert.deepEqual([many(256).unread, many(256).blast.length], [[], 256]);
  assert.deepEqual([many(257).unread, many(257).blast.length], [["blast-v1"], 256]);
});

test("whatever is declared soundly is read, whatever stands beside it", () => {
  const skill = fc.stringMatching(/^[a-z]{1,8}$/);
  const note = fc.string({ maxLength: 50 });
  const entries = fc.dictionary(
    skill,
    fc.record(
      { mode: fc.constantFrom(...HITL_MODES), note },
      { requiredKeys: ["mode"], noNullPrototype: true },
    ),
    { maxKeys: 8, noNullPrototype: true },
  );
  const radii = fc.dictionary(
    skill,
    fc.record({ radius: fc.constantFrom(...BLAST_RADII) }, { noNullPrototype: true }),
    { maxKeys: 8, noNullPrototype: true },
  );
  fc.assert(
    fc.property(entries, radii, fc.jsonValue(), (hitl, blast, rubbish) => {
      const { extensions } = readExtensions([
        declared("blast-v1", { ...blast, "": rubbish }),
        declared("hitl-mode-v1", { ...hitl, "": rubbish }),
        { uri: `${BASE}/trace-v1`, required: false, params: rubbish },
      ]);
      assert.deepEqual(
        Object.fromEntries(extensions.hitl.map(({ skill: of, ...entry }) => [of, entry])),
        hitl,
      );
      assert.deepEqual(
        Object.fromEntries(extensions.blast.map(({ skill: of, ...entry }) => [of, entry])),
        blast,
      );
      assert.equal(extensions.trace, true);
    }),
  );
});
