import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_CORRELATION_ID } from "../../shared/http/correlation.ts";
import { correlationHeaders } from "../../shared/http/index.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("what is known of where a request belongs is said, and nothing else", () => {
  assert.deepEqual(correlationHeaders({ correlationId: "c-1", parentId: "m-1", traceparent }), {
    "x-correlation-id": "c-1",
    "x-parent-id": "m-1",
    traceparent,
  });
  assert.deepEqual(correlationHeaders({}), {});
  assert.deepEqual(correlationHeaders({ correlationId: "c-1" }), { "x-correlation-id": "c-1" });
});

test("an id has a bound, and what no header can carry is left out", () => {
  const id = "x".repeat(MAX_CORRELATION_ID);
  assert.deepEqual(correlationHeaders({ correlationId: id, parentId: `${id}x` }), { "x-correlation-id": id });
  for (const bad of ["", "a b", "a\r\nb: c", "ä"])
    assert.deepEqual(correlationHeaders({ correlationId: bad, parentId: bad }), {});
});

test("a trace's context is as W3C has it, or is left out", () => {
  for (const bad of [
    "",
    `${traceparent}-00`,
    traceparent.toUpperCase(),
    traceparent.replace("00-0a", "ff-0a"),
    traceparent.replace(/-[0-9a-f]{32}-/, `-${"0".repeat(32)}-`),
    traceparent.replace(/-[0-9a-f]{16}-/, `-${"0".repeat(16)}-`),
  ])
    assert.deepEqual(correlationHeaders({ traceparent: bad }), {});
});

test("any texts give headers that fetch takes", () => {
  const text = fc.option(fc.string(), { nil: undefined });
  fc.assert(
    fc.property(text, text, text, (correlationId, parentId, trace) => {
      new Headers(correlationHeaders({ correlationId, parentId, traceparent: trace }));
    }),
  );
});
