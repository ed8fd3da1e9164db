import assert from "node:assert/strict";
import { test } from "node:test";
import { BINDING, readEnvelope, readTaskPayload, taskIdOf, VERSION } from "../../shared/wire/index.ts";
import { loadTaskCases } from "../support/fixtures.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");
const SUBJECT = "a2a.v1.task.adam.acme-support.msg_1";
const BASE = {
  version: VERSION,
  binding: BINDING,
  messageId: "msg_1",
  from: "adam",
  to: "acme-support",
  type: "task",
  payload: {},
};

/** What policies decide, not shapes. */
const DECIDED_BY_POLICY = new Set([
  "channelRef of another hosted agent",
  "originRuntimeRef names another runtime",
]);

function read(changes: object, subject = SUBJECT, now = NOW) {
  return readEnvelope(subject, new TextEncoder().encode(JSON.stringify({ ...BASE, ...changes })), now);
}

function refused(changes: object, reason: RegExp, subject = SUBJECT) {
  const reading = read(changes, subject);
  assert.equal(reading.ok, false);
  assert.match(reading.ok ? "" : reading.reason, reason);
}

const at = (ms: number) => new Date(NOW + ms).toISOString();

for (const { name, subject, bytes, expect } of loadTaskCases(NOW))
  test(`case: ${name}`, () => {
    const reading = readEnvelope(subject, bytes, NOW);
    assert.equal(reading.ok, expect.ack === "ack", reading.ok ? "" : reading.reason);
    if (!reading.ok) return;
    const { envelope } = reading.value;
    if (expect.taskId)
      assert.equal(taskIdOf(envelope.from, envelope.to ?? "", envelope.messageId), expect.taskId);
    const shapeIsWrong = expect.code === "invalid_envelope" && !DECIDED_BY_POLICY.has(name);
    assert.equal(readTaskPayload(envelope.payload).ok, !shapeIsWrong);
  });

test("an envelope comes with its parsed subject", () => {
  const reading = read({ createdAt: at(0), hop: 3, revision: 0 });
  assert.deepEqual(reading, {
    ok: true,
    value: {
      envelope: { ...BASE, revision: 0, createdAt: at(0) },
      subject: { kind: "task", from: "adam", to: "acme-support", messageId: "msg_1" },
    },
  });
});

test("null means absent, and a payload may be missing", () => {
  const reading = read({
    taskId: null,
    revision: null,
    createdAt: null,
    expiresAt: null,
    payload: undefined,
  });
  assert.equal(reading.ok, true);
  refused({ messageId: null }, /^envelope\.messageId: /);
  refused({ version: undefined }, /^envelope\.version: /);
  refused({ to: null }, /^envelope\.to: /);
});

test("field names are exact", () =>
  refused({ version: undefined, Version: VERSION }, /^envelope\.version: /));

test("reasons say what was expected and quote no value", () => {
  refused({ revision: "top secret" }, /^envelope\.revision: expected number, received string$/);
  refused({ createdAt: "top secret" }, /^envelope\.createdAt: expected an RFC 3339 time/);
  for (const field of [
    "version",
    "binding",
    "messageId",
    "from",
    "to",
    "type",
    "revision",
    "createdAt",
    "expiresAt",
  ]) {
    const reading = read({ [field]: "top secret" });
    assert.doesNotMatch(reading.ok ? "top secret" : reading.reason, /top secret/, field);
  }
});

test("revisions are whole and not negative", () => {
  assert.equal(read({ revision: Number.MAX_SAFE_INTEGER }).ok, true);
  for (const revision of [-1, 1.5, "1", 2 ** 53]) refused({ revision }, /^envelope\.revision: /);
});

test("a creation at most five minutes ahead", () => {
  assert.equal(read({ createdAt: at(5 * 60_000) }).ok, true);
  refused({ createdAt: at(5 * 60_000 + 1) }, /^envelope\.createdAt: /);
  refused({ createdAt: at(5 * 60_000).replace("Z", "000001Z") }, /^envelope\.createdAt: /);
});

test("an expiry at most a minute ago, and after the creation", () => {
  assert.equal(read({ expiresAt: at(-60_000) }).ok, true);
  refused({ expiresAt: at(-60_001) }, /^envelope\.expiresAt: /);
  refused({ createdAt: at(0), expiresAt: at(0) }, /^envelope\.expiresAt: /);
  assert.equal(
    read({ createdAt: "2026-08-01T12:00:00Z", expiresAt: "2026-08-01T12:00:00.000000001Z" }).ok,
    true,
  );
});

test("a message id whose rejection could not be named", () => {
  const withId = (length: number) => {
    const messageId = "m".repeat(length);
    return read({ messageId }, `a2a.v1.task.adam.acme-support.${messageId}`);
  };
  assert.equal(withId(124).ok, true);
  assert.equal(withId(125).ok, false);
});

test("a subject that is none", () => refused({}, /^subject: /, "a2a.v2.task.adam.acme-support.msg_1"));

test("a control agrees with its subject", () => {
  const subject = "a2a.v1.control.adam.acme-support.task_1.cancel";
  const control = { type: "control", taskId: "task_1", messageId: "m".repeat(128) };
  assert.equal(read(control, subject).ok, true);
  refused({ ...control, taskId: "task_2" }, /^envelope\.taskId: /, subject);
  refused({ ...control, taskId: undefined }, /^envelope\.taskId: /, subject);
  refused({ ...control, from: "eve" }, /^envelope\.from: /, subject);
  refused({ ...control, to: "other" }, /^envelope\.to: /, subject);
});

test("an event agrees with its subject", () => {
  const event = { type: "event", from: "acme-support", to: "adam" };
  const accepted = "a2a.v1.event.acme-support.adam.task_1.accepted";
  assert.equal(read({ ...event, taskId: "task_1" }, accepted).ok, true);
  refused({ ...event, taskId: "task_2" }, /^envelope\.taskId: /, accepted);
  const rejected = "a2a.v1.event.acme-support.adam.msg_msg_1.rejected";
  assert.equal(read(event, rejected).ok, true);
  refused({ ...event, messageId: "msg_2" }, /^envelope\.messageId: /, rejected);
});

test("the payload's bound counts what was sent, and nothing around it", () => {
  const encode = (payload: string, around = "") =>
    new TextEncoder().encode(
      JSON.stringify(BASE).replace('"payload":{}', `"payload":${around}${payload}${around}`),
    );
  const padded = (length: number) => `"${"x".repeat(length - 2)}"`;
  assert.equal(readEnvelope(SUBJECT, encode(padded(1_048_576), " ".repeat(1_000)), NOW).ok, true);
  assert.equal(readEnvelope(SUBJECT, encode(padded(1_048_577)), NOW).ok, false);
  assert.equal(readEnvelope(SUBJECT, encode(`[1,${" ".repeat(1_048_576)}2]`), NOW).ok, false);
});
