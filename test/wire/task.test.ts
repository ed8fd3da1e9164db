import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readEnvelope, readTaskPayload, skillSlug, taskMessage } from "../../shared/wire/index.ts";

const MINIMAL = { a2a: "Hello", channelRef: "support", skillId: "support/task" };

function request(changes: object) {
  const read = readTaskPayload({ ...MINIMAL, ...changes });
  assert.ok(read.ok, read.ok ? "" : read.reason);
  return read.value;
}

function refused(payload: unknown, reason: RegExp) {
  const read = readTaskPayload(payload);
  assert.equal(read.ok, false);
  assert.match(read.ok ? "" : read.reason, reason);
}

test("a minimal request", () => assert.deepEqual(request({}), { ...MINIMAL, delivery: {} }));

test("every field that is used, and none that is not", () => {
  const used = {
    userVisibleSummary: "Say hello",
    clientTaskRef: "ref-7",
    contextId: "c",
    delivery: {
      timeoutSec: 60,
      maxDelegationDepth: 1,
      resultVisibility: "proxy",
      discordTranscriptMode: "mirror",
      shareDiscordContext: false,
      discordContext: { guildId: "1" },
      coPresentFrom: "adam",
    },
    originRequester: { discordUserId: "2" },
    originRuntimeRef: {
      runtimeAgentId: "adam-lobby",
      botAgentId: "adam",
      channelRef: "lobby",
      displayName: "Lobby",
    },
  };
  const delivery = { ...used.delivery, requiresConfirmation: "maybe", discordReplyChannelId: 3 };
  assert.deepEqual(request({ ...used, delivery, auditMetadata: 7 }), { ...MINIMAL, ...used });
});

test("null, and where a text could be the empty text, mean absent", () => {
  const none = {
    clientTaskRef: null,
    contextId: "",
    delivery: null,
    originRequester: null,
    originRuntimeRef: {},
  };
  assert.deepEqual(request(none), { ...MINIMAL, delivery: {} });
  const delivery = {
    timeoutSec: null,
    resultVisibility: "",
    discordTranscriptMode: null,
    coPresentFrom: "",
    discordContext: { guildId: "", channelId: null },
  };
  assert.deepEqual(request({ delivery, originRuntimeRef: { runtimeAgentId: "" } }), {
    ...MINIMAL,
    delivery: {},
  });
});

test("a timeout that is not positive means absent, a depth that is negative none", () => {
  assert.deepEqual(request({ delivery: { timeoutSec: 0, maxDelegationDepth: -3 } }).delivery, {
    maxDelegationDepth: 0,
  });
  assert.deepEqual(request({ delivery: { timeoutSec: 1 } }).delivery, { timeoutSec: 1 });
});

test("any a2a but null will do", () => {
  for (const a2a of ["", 0, false, [], {}]) assert.deepEqual(request({ a2a }).a2a, a2a);
  refused({ ...MINIMAL, a2a: null }, /^payload\.a2a: /);
});

test("what does not fit is named", () => {
  refused(null, /^payload: /);
  refused("text", /^payload: /);
  refused({ ...MINIMAL, channelRef: " \t" }, /^payload\.channelRef: /);
  refused({ ...MINIMAL, skillId: null }, /^payload\.skillId: /);
  refused({ ...MINIMAL, delivery: [] }, /^payload\.delivery: /);
  refused({ ...MINIMAL, delivery: { timeoutSec: 1.5 } }, /^payload\.delivery\.timeoutSec: /);
  refused({ ...MINIMAL, delivery: { timeoutSec: 1e300 } }, /^payload\.delivery\.timeoutSec: /);
  refused(
    { ...MINIMAL, delivery: { shareDiscordContext: "yes" } },
    /^payload\.delivery\.shareDiscordContext: /,
  );
  refused(
    { ...MINIMAL, originRuntimeRef: { runtimeAgentId: "no id" } },
    /^payload\.originRuntimeRef\.runtimeAgentId: /,
  );
  refused(
    { ...MINIMAL, originRuntimeRef: { botAgentId: "12345" } },
    /^payload\.originRuntimeRef\.botAgentId: /,
  );
});

test("a refusal keeps the reference that its answer echoes", () => {
  const { clientTaskRef } = { clientTaskRef: undefined, ...readTaskPayload({ clientTaskRef: "ref-7" }) };
  assert.equal(clientTaskRef, "ref-7");
  for (const clientTaskRef of [7, "", null])
    assert.equal("clientTaskRef" in readTaskPayload({ clientTaskRef }), false);
});

test("a reference at its bound and one past it, where it is not echoed either", () => {
  const longest = "r".repeat(1_024);
  assert.equal(request({ clientTaskRef: longest }).clientTaskRef, longest);
  const read = readTaskPayload({ ...MINIMAL, clientTaskRef: `${longest}r` });
  assert.deepEqual(read, { ok: false, reason: "payload.clientTaskRef: expected at most 1024 characters" });
});

test("any payload is a request or refused, and never throws", () => {
  const shaped = fc.record(
    {
      a2a: fc.jsonValue(),
      channelRef: fc.string(),
      skillId: fc.string(),
      delivery: fc.jsonValue(),
      originRuntimeRef: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), shaped), (payload) => {
      const read = readTaskPayload(payload);
      if (read.ok) assert.deepEqual(readTaskPayload(read.value), read);
    }),
  );
});

test("slugs", () => {
  for (const [skillId, slug] of [
    ["task", "task"],
    ["support/task", "task"],
    ["other/general_task", "general_task"],
    ["a/b/task", "task"],
    ["/task", "task"],
    [`x/${"s".repeat(64)}`, "s".repeat(64)],
    [`x/${"s".repeat(65)}`, null],
    ["support/ta sk", null],
    ["support/", null],
    ["support/_task", null],
    ["task*", null],
    ["", null],
  ] as const)
    assert.equal(skillSlug(skillId), slug, skillId);
});

test("what a delegator sends is what an executor reads", () => {
  const sent = { ...MINIMAL, clientTaskRef: "ref-7", delivery: { timeoutSec: 60 } };
  const createdAt = "2026-08-01T12:00:00.000Z";
  const { subject, msgId, body } = taskMessage({
    from: "adam",
    to: "acme",
    messageId: "m1",
    request: sent,
    createdAt,
  });
  assert.equal(subject, "a2a.v1.task.adam.acme.m1");
  assert.equal(msgId, "task:adam:acme:m1");
  const read = readEnvelope(subject, new TextEncoder().encode(body), Date.parse(createdAt));
  assert.ok(read.ok);
  assert.deepEqual(readTaskPayload(read.value.envelope.payload), { ok: true, value: sent });
});
