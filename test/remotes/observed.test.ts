import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { MAX_OBSERVED, Observing, progressOf } from "../../shared/remotes/observed/observing.ts";
import { MAX_COST_USD, MAX_DELTAS, readObserved } from "../../shared/remotes/observed/values.ts";
import { tellFigures } from "../../shared/telemetry/figures.ts";

const mime = (kind: string) => `application/vnd.protolabs.${kind}+json`;
const cost = (data: unknown) => ({ mimeType: mime("cost-v1"), data });
const confidence = (data: unknown) => ({ mimeType: mime("confidence-v1"), data });
const deltas = (...all: unknown[]) => ({ mimeType: mime("worldstate-delta-v1"), data: { deltas: all } });
const tool = (toolCallId: string, phase: string, more: object = {}) => ({
  mimeType: mime("tool-call-v1"),
  data: { toolCallId, name: "grep", phase, ...more },
});
const DELTA = { domain: "board", path: "a.b", op: "set", value: 1 };
const noteOf = (part: { mimeType: string; data: unknown }) => {
  const read = readObserved(part);
  return read.kind === "unread" ? read.note : read.kind;
};

describe("a value of an extension", () => {
  test("is read as it is", () => {
    const usage = { input_tokens: 900, output_tokens: 120 };
    assert.deepEqual(
      readObserved(cost({ usage, durationMs: 4_100, costUsd: 0.004, success: true, more: "of it" })),
      {
        kind: "cost",
        value: { usage, durationMs: 4_100, costUsd: 0.004, success: true },
      },
    );
    assert.deepEqual(readObserved(deltas(DELTA)), { kind: "worldstate", value: [DELTA] });
    assert.deepEqual(readObserved({ mimeType: "application/json", data: 1 }), { kind: "unknown" });
    assert.deepEqual(readObserved({ mimeType: mime("future-v9"), data: 1 }), { kind: "unknown" });
  });

  test("of confidence lies between 0 and 1", () => {
    for (const [told, held] of [
      [0.5, 0.5],
      [-3, 0],
      [97, 1],
    ]) {
      const read = readObserved(confidence({ confidence: told }));
      assert.equal(read.kind === "confidence" && read.value.confidence, held);
    }
  });

  test("is believed up to its bound, and is cut where it is a text", () => {
    assert.equal(noteOf(cost({ costUsd: MAX_COST_USD })), "cost");
    assert.equal(noteOf(cost({ costUsd: MAX_COST_USD + 1 })), "cost-v1: its costUsd is not as expected");
    assert.equal(noteOf(cost({ durationMs: 366 * 86_400_000 })), "cost");
    assert.equal(
      noteOf(cost({ durationMs: 366 * 86_400_000 + 1 })),
      "cost-v1: its durationMs is not as expected",
    );
    assert.equal(noteOf(deltas(...Array(MAX_DELTAS).fill(DELTA))), "worldstate");
    assert.match(noteOf(deltas(...Array(MAX_DELTAS + 1).fill(DELTA))), /its deltas is/);
    assert.equal(noteOf(deltas({ ...DELTA, path: "p".repeat(256) })), "worldstate");
    assert.match(noteOf(deltas({ ...DELTA, path: "p".repeat(257) })), /its deltas\.0\.path is/);
    const kept = (bytes: number) => {
      const read = readObserved(tool("1", "started", { args: "x".repeat(bytes - 2) }));
      return read.kind === "toolCall" && read.value.args !== undefined;
    };
    assert.deepEqual([kept(2_048), kept(2_049)], [true, false]);
    const told = readObserved(confidence({ confidence: 1, explanation: "x".repeat(2_001) }));
    assert.equal(told.kind === "confidence" && told.value.explanation?.length, 2_000);
  });

  test("that is none is noted by kind and field, and nothing else", () => {
    for (const [part, note] of [
      [cost({ costUsd: -1 }), "cost-v1: its costUsd is not as expected"],
      [cost({ usage: { input_tokens: "many" } }), "cost-v1: its usage.input_tokens is not as expected"],
      [confidence({ confidence: "hunter2" }), "confidence-v1: its confidence is not as expected"],
      [confidence(null), "confidence-v1: its value is not as expected"],
      [deltas({ ...DELTA, op: "drop" }), "worldstate-delta-v1: its deltas.0.op is not as expected"],
      [tool("1", "hunter2"), "tool-call-v1: its phase is not as expected"],
    ] as const)
      assert.equal(noteOf(part), note);
  });

  test("does no harm, whatever it is", () => {
    const kinds = fc.constantFrom("cost-v1", "confidence-v1", "worldstate-delta-v1", "tool-call-v1", "x");
    const member = fc.constantFrom("usage", "costUsd", "confidence", "deltas", "phase", "name", "toolCallId");
    const data = fc.oneof(fc.jsonValue(), fc.dictionary(member, fc.jsonValue()));
    fc.assert(
      fc.property(fc.array(fc.tuple(kinds, data)), (parts) => {
        const observing = new Observing();
        observing.take([
          cost({ costUsd: 2 }),
          ...parts.map(([kind, of]) => ({ mimeType: mime(kind), data: of })),
        ]);
        for (const [name, value] of Object.entries(observing.metrics)) {
          assert.ok(Number.isFinite(value) && value >= 0, name);
        }
        const { confidence: sure = 0, cost_usd: usd = 0 } = observing.metrics;
        assert.ok(sure <= 1 && usd <= MAX_COST_USD);
      }),
    );
  });
});

describe("what a task's agent tells", () => {
  test("becomes the result's metrics", () => {
    const observing = new Observing();
    assert.deepEqual(observing.metrics, {});
    const usage = { input_tokens: 900, output_tokens: 120, cache_read_input_tokens: 7 };
    observing.take([
      cost({ usage, durationMs: 4_100, costUsd: 0.004, success: true }),
      confidence({ confidence: 0.9 }),
      deltas(DELTA, { ...DELTA, op: "inc" }),
      tool("1", "started"),
      tool("1", "completed"),
      tool("2", "started"),
      tool("2", "failed", { error: "no such file" }),
      cost("nothing"),
    ]);
    assert.deepEqual(observing.metrics, {
      cost_usd: 0.004,
      ...usage,
      remote_duration_ms: 4_100,
      confidence: 0.9,
      success: 1,
      tool_calls: 2,
      tool_calls_failed: 1,
      worldstate_deltas: 2,
    });
    assert.deepEqual(observing.deltas.length, 2);
    assert.deepEqual(observing.notes, ["cost-v1: its value is not as expected"]);
  });

  test("counts once, however often and in whatever pieces it is seen", () => {
    const part = fc.oneof(
      fc.record({ costUsd: fc.integer({ min: 0, max: 9 }) }).map(cost),
      fc.record({ confidence: fc.constantFrom(0, 0.5, 1) }).map(confidence),
      fc.integer({ min: 0, max: 9 }).map((value) => deltas({ ...DELTA, value })),
      fc
        .tuple(fc.constantFrom("a", "b"), fc.constantFrom("started", "completed", "failed"))
        .map(([id, phase]) => tool(id, phase)),
    );
    fc.assert(
      fc.property(fc.array(part), fc.array(fc.nat({ max: 20 })), (parts, looks) => {
        const once = new Observing();
        once.take(parts);
        const often = new Observing();
        const heard: unknown[] = [];
        // Looks at a task show all of it so far, again and again; the last one shows all.
        for (const until of [...looks.toSorted((a, b) => a - b), parts.length])
          heard.push(...often.take(parts.slice(0, until)).toolCalls);
        assert.deepEqual(often.metrics, once.metrics);
        assert.deepEqual(often.deltas, once.deltas);
        assert.equal(new Set(heard.map((call) => JSON.stringify(call))).size, heard.length);
        const { metrics } = often;
        often.take(parts);
        assert.deepEqual(often.metrics, metrics, "a handler that is run again");
      }),
    );
  });

  test("of calls of tools is progress", () => {
    const observing = new Observing();
    const told = progressOf(observing.take([tool("1", "started", { args: { path: "a" } }), deltas(DELTA)]));
    assert.equal(told?.text, '"grep": started');
    assert.deepEqual(JSON.parse(JSON.stringify(told?.data)), {
      toolCalls: [{ toolCallId: "1", name: "grep", phase: "started", args: { path: "a" } }],
      worldstateDeltas: [DELTA],
    });
    assert.equal(progressOf(observing.take([deltas({ ...DELTA, value: 2 })]))?.text, "1 change of the world");
    assert.equal(progressOf(observing.take([deltas(DELTA), cost({ costUsd: 1 })])), undefined);
    const large = Array.from({ length: 20 }, (_, n) =>
      tool(`large ${n}`, "started", { args: "x".repeat(1_000) }),
    );
    const { data } = progressOf(observing.take(large)) ?? { data: {} };
    assert.ok(Buffer.byteLength(JSON.stringify(data)) <= 12 * 1_024 + 50);
    assert.match(JSON.stringify(data), /"large 19"/, "the newest are kept");
    // A copy, and a frame that comes too late.
    assert.deepEqual(observing.take([tool("1", "started", { args: { path: "b" } })]).toolCalls, []);
    assert.equal(observing.take([tool("1", "completed")]).toolCalls.length, 1);
    assert.deepEqual(observing.take([tool("1", "failed")]).toolCalls, []);
  });

  test("is looked at up to its bound", () => {
    const observing = new Observing();
    const many = (count: number) => Array.from({ length: count }, (_, n) => tool(String(n), "started"));
    observing.take(many(MAX_OBSERVED));
    assert.equal(observing.metrics.tool_calls, MAX_OBSERVED);
    observing.take(many(MAX_OBSERVED + 1));
    assert.equal(observing.metrics.tool_calls, MAX_OBSERVED);
    const changing = new Observing();
    for (let n = 0; n < 12; n++)
      changing.take([deltas(...Array.from({ length: 90 }, (_, m) => ({ ...DELTA, value: n * 90 + m })))]);
    assert.equal(changing.deltas.length, 1_000);
    const wrong = new Observing();
    for (let n = 0; n < 30; n++)
      wrong.take([
        deltas(...Array.from({ length: n + 1 }, (_, m) => ({ ...DELTA, op: m === n ? 1 : "set" }))),
      ]);
    assert.equal(wrong.notes.length, 20);
  });
});

test("what a result says is counted by agent, and told where it has ended", () => {
  const counted: unknown[] = [];
  const note = (...of: unknown[]) => void counted.push(of);
  const telemetry = { count: note, measure: note };
  const runtime = "acme-audit";
  const metrics = {
    cost_usd: 0.5,
    input_tokens: 10,
    tool_calls: 3,
    worldstate_deltas: 1,
    confidence: 0.8,
    elapsed_ms: 5,
  };
  assert.deepEqual(tellFigures(telemetry, runtime, metrics, true), {
    costUsd: 0.5,
    tokens: 10,
    toolCalls: 3,
    worldstateDeltas: 1,
    confidence: 0.8,
  });
  assert.deepEqual(counted.splice(0), [
    ["TaskCostUsd", 0.5, { runtime }],
    ["TokensUsed", 10, { runtime }],
    ["ToolCalls", 3, { runtime }],
    ["WorldstateDeltas", 1, { runtime }],
    ["Confidence", 0.8, { runtime }],
    ["SureFailures", 1, { runtime }],
  ]);
  tellFigures(telemetry, runtime, { confidence: 0.79 }, true);
  tellFigures(telemetry, runtime, { confidence: 1 }, false);
  assert.equal(counted.splice(0).length, 2, "who was not sure, and who has not failed");
  tellFigures(telemetry, runtime, { cost_usd: -1, tool_calls: 1e12 + 1, confidence: 2 }, false);
  tellFigures(telemetry, runtime, { cost_usd: Number.NaN, tool_calls: 1e12 }, false);
  assert.deepEqual(counted, [["ToolCalls", 1e12, { runtime }]]);
});
