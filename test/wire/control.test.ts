import assert from "node:assert/strict";
import { test } from "node:test";
import { type ControlKind, controlMessage, readControl, readEnvelope } from "../../shared/wire/index.ts";

const CREATED_AT = "2026-08-01T12:00:09.000Z";
const CANCEL = {
  from: "adam",
  to: "acme",
  taskId: "task_1",
  kind: "cancel",
  revision: 2,
  createdAt: CREATED_AT,
} as const;

function control(message: { subject: string; body: string }) {
  const read = readEnvelope(message.subject, new TextEncoder().encode(message.body), Date.parse(CREATED_AT));
  assert.ok(read.ok, read.ok ? "" : read.reason);
  const { envelope, subject } = read.value;
  assert.ok(subject.kind === "control");
  return readControl(envelope, subject);
}

/** The cancel with another payload. */
function withPayload(payload: unknown, envelope: object = {}) {
  const { subject, body } = controlMessage(CANCEL);
  return control({ subject, body: JSON.stringify({ ...JSON.parse(body), payload, ...envelope }) });
}

test("a control as existing peers write it", () => {
  const { subject, msgId, body } = controlMessage({
    ...CANCEL,
    reason: "changed my mind",
    clientTaskRef: "ref-7",
    a2a: { reason: "changed my mind" },
  });
  assert.equal(subject, "a2a.v1.control.adam.acme.task_1.cancel");
  assert.equal(msgId, "control:adam:acme:task_1:cancel:2");
  assert.deepEqual(JSON.parse(body), {
    version: "v1",
    binding: "urn:kiro-discord-bot:a2a:nats:v1",
    messageId: "task_1_cancel_2",
    from: "adam",
    to: "acme",
    type: "control",
    taskId: "task_1",
    revision: 2,
    payload: {
      a2a: { reason: "changed my mind" },
      messageId: "task_1_cancel_2",
      clientTaskRef: "ref-7",
      reason: "changed my mind",
      revision: 2,
    },
    createdAt: CREATED_AT,
  });
});

test("what is sent is read", () => {
  for (const kind of ["status", "cancel", "input_reply", "auth_reply"] satisfies ControlKind[])
    assert.deepEqual(control(controlMessage({ ...CANCEL, kind, messageId: "c-1", a2a: { input: "x" } })), {
      kind,
      taskId: "task_1",
      from: "adam",
      to: "acme",
      revision: 2,
      messageId: "c-1",
      a2a: { input: "x" },
    });
});

test("a payload of another shape counts as empty", () => {
  const empty = {
    kind: "cancel",
    taskId: "task_1",
    from: "adam",
    to: "acme",
    revision: 2,
    messageId: "task_1_cancel_2",
  };
  for (const payload of [null, undefined, "cancel!", 7, [], { reason: 7 }, { a2a: null }])
    assert.deepEqual(withPayload(payload), empty);
});

test("the reason may stand in a2a alone", () => {
  assert.equal(withPayload({ a2a: { reason: "late" } }).reason, "late");
  assert.equal(withPayload({ a2a: { reason: "late" }, reason: "first" }).reason, "first");
  assert.equal(withPayload({ a2a: { reason: 7 } }).reason, undefined);
});

test("the revision is the envelope's, or the payload's, or none", () => {
  assert.equal(withPayload({ revision: 9 }).revision, 2);
  assert.equal(withPayload({ revision: 9 }, { revision: null }).revision, 9);
  assert.equal(withPayload({}, { revision: null }).revision, 0);
});

test("a kind that nobody knows is read as it is", () => {
  const { subject, body } = controlMessage(CANCEL);
  assert.equal(control({ subject: subject.replace("cancel", "explode"), body }).kind, "explode");
});

test("a revision that is not positive is not sent", () => {
  for (const revision of [0, -1, 1.5, Number.NaN])
    assert.throws(() => controlMessage({ ...CANCEL, revision }), RangeError);
});
