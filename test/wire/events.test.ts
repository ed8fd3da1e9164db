import assert from "node:assert/strict";
import { test } from "node:test";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  rejectedEvent,
  resultEvent,
  statusEvent,
  taskIdOf,
  type WireEvent,
} from "../../shared/wire/index.ts";
import { assertForm, loadEventForms } from "../support/fixtures.ts";

const CREATED_AT = "2026-08-01T12:00:01.000Z";
const { task: asked, events: forms } = loadEventForms();
const task = { taskId: taskIdOf(asked.from, asked.to, asked.messageId), ...asked };
const metrics = { elapsed_ms: 8123 };
const report = artifactRef(task.taskId, {
  id: "report",
  name: "report.txt",
  mediaType: "text/plain",
  digest: "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
  sizeBytes: 6,
});

/** The events of the fixtures, in their order. */
const built: readonly WireEvent[] = [
  acceptedEvent(task, CREATED_AT),
  statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "reading" }, CREATED_AT),
  artifactEvent(task, { revision: 3, artifact: report }, CREATED_AT),
  resultEvent(
    task,
    { revision: 4, state: "TASK_STATE_COMPLETED", content: "done", artifacts: [report], metrics },
    CREATED_AT,
  ),
  resultEvent(
    task,
    { revision: 2, state: "TASK_STATE_FAILED", error: { code: "internal", message: "no disk" }, metrics },
    CREATED_AT,
  ),
  statusEvent(
    task,
    { revision: 2, state: "TASK_STATE_CANCELED", error: { code: "canceled", message: "changed my mind" } },
    CREATED_AT,
  ),
  rejectedEvent(
    task,
    { clientTaskRef: asked.clientTaskRef, code: "skill_not_allowed", message: "skill_not_allowed: deploy" },
    CREATED_AT,
  ),
];

test("the fixtures have as many events", () => assert.equal(built.length, forms.length));

for (const [index, form] of forms.entries())
  test(`event ${index}: ${form.kind}`, () => {
    const event = built[index];
    assert.ok(event);
    assert.equal(event.kind, form.kind);
    assert.equal(event.subject, form.subject);
    assert.deepEqual({ "Nats-Msg-Id": event.msgId }, form.headers);
    const body: unknown = JSON.parse(event.body);
    assertForm(body, form.body);
    assertForm({ revision: event.revision }, { revision: Object(body).revision });
  });

test("the same event has the same bytes", () => {
  assert.deepEqual(acceptedEvent({ ...task }, CREATED_AT), acceptedEvent(task, CREATED_AT));
});

test("a small text artifact may be given in content", () => {
  const { body } = artifactEvent(task, { revision: 3, artifact: report, content: "hello\n" }, CREATED_AT);
  assert.equal(JSON.parse(body).payload.content, "hello\n");
});

test("an empty content is left out, except in a result's own Content", () => {
  const status = statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "" }, CREATED_AT);
  assert.equal("content" in JSON.parse(status.body).payload, false);
  const result = resultEvent(
    task,
    { revision: 2, state: "TASK_STATE_COMPLETED", content: "", metrics },
    CREATED_AT,
  );
  assert.equal("content" in JSON.parse(result.body).payload, false);
  assert.equal(JSON.parse(result.body).payload.result.Content, "");
});

test("halves of surrogate pairs do not get onto the wire", () => {
  const error = { code: "internal", message: "\udc4d" } as const;
  const { body } = resultEvent(
    task,
    { revision: 2, state: "TASK_STATE_FAILED", content: "\ud83d", error, metrics },
    CREATED_AT,
  );
  assert.doesNotMatch(body, /\\ud/);
  assert.equal(JSON.parse(body).payload.result.Content, "\ufffd");
});

test("metrics that are no number are left out", () => {
  const strange = { a: Number.NaN, b: Number.POSITIVE_INFINITY, c: 1.5 };
  const { body } = resultEvent(
    task,
    { revision: 2, state: "TASK_STATE_COMPLETED", metrics: strange },
    CREATED_AT,
  );
  assert.deepEqual(JSON.parse(body).payload.result.Metrics, { c: 1.5 });
});

test("an error's message is cut at its bound", () => {
  const event = (message: string) =>
    JSON.parse(
      statusEvent(
        task,
        { revision: 2, state: "TASK_STATE_FAILED", error: { code: "internal", message } },
        CREATED_AT,
      ).body,
    ).payload.error.Message;
  assert.equal(event("x".repeat(8_192)).length, 8_192);
  assert.equal(event("x".repeat(8_193)).length, 8_192);
  assert.equal(event("\u0001".repeat(8_192)).length, 1_365);
});

test("a status has its data beside its text, and the same bytes as ever without any", () => {
  const of = { revision: 2, state: "TASK_STATE_WORKING", content: "reading" } as const;
  const payloadOf = (event: WireEvent) => /"payload":(.*),"createdAt"/.exec(event.body)?.[1];
  const before = `{"taskId":"${task.taskId}","state":"TASK_STATE_WORKING","content":"reading"`;
  const after = '"error":{"Code":"","Message":""},"revision":2}';
  assert.equal(payloadOf(statusEvent(task, of, CREATED_AT)), `${before},${after}`);
  const data = { pages: [1, 2] };
  assert.equal(
    payloadOf(statusEvent(task, { ...of, data }, CREATED_AT)),
    `${before},"data":{"pages":[1,2]},${after}`,
  );
});
