import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import {
  agentId,
  blankedIn,
  type MsgIdParts,
  messageId,
  msgIdOf,
  runtimeAgentId,
  runtimeAlias,
  taskId,
  taskIdOf,
} from "../../shared/wire/index.ts";
import { readFixture } from "../support/fixtures.ts";

const fixtures = z
  .object({
    taskId: z.array(
      z.object({ from: z.string(), to: z.string(), messageId: z.string(), taskId: z.string() }),
    ),
    runtimeAlias: z.array(z.object({ name: z.string(), stableKey: z.array(z.string()), alias: z.string() })),
    runtimeAgentId: z.array(
      z.object({ bot: z.string(), alias: z.string(), stableKey: z.string(), id: z.string() }),
    ),
    msgId: z.array(z.object({ kind: z.string(), parts: z.record(z.string(), z.unknown()), id: z.string() })),
  })
  .parse(readFixture("ids.json"));

test("task ids of the fixtures", () => {
  for (const { from, to, messageId, taskId } of fixtures.taskId)
    assert.equal(taskIdOf(from, to, messageId), taskId);
});

test("runtime aliases of the fixtures", () => {
  for (const { name, stableKey, alias } of fixtures.runtimeAlias)
    assert.equal(runtimeAlias(name, stableKey), alias);
});

test("runtime ids of the fixtures", () => {
  for (const { bot, alias, stableKey, id } of fixtures.runtimeAgentId)
    assert.equal(runtimeAgentId(bot, alias, stableKey), id);
});

test("message ids of the fixtures", () => {
  assert.equal(fixtures.msgId.length, 7);
  for (const { kind, parts, id } of fixtures.msgId)
    assert.equal(msgIdOf({ kind, ...parts } as MsgIdParts), id);
});

test("ids at their bounds and one past them", () => {
  const longest: [{ safeParse(value: unknown): { success: boolean } }, number][] = [
    [agentId(), 64],
    [messageId(), 128],
    [taskId(), 96],
  ];
  for (const [schema, length] of longest) {
    assert.equal(schema.safeParse("x".repeat(length)).success, true);
    assert.equal(schema.safeParse("x".repeat(length + 1)).success, false);
    assert.equal(schema.safeParse("").success, false);
    assert.equal(schema.safeParse("a\n").success, false);
  }
});

test("ids that change with each start are no agent ids", () => {
  for (const id of ["12345", "bot-pid-42", "pid42", "PID_7-bot", "bot-1785570000", "bot_1785570000123456789"])
    assert.equal(agentId().safeParse(id).success, false, id);
  for (const id of ["bot-42", "rapid-42", "bot-178557000", "1785570000-bot", "bot1785570000"])
    assert.equal(agentId().safeParse(id).success, true, id);
});

test("what peers would blank in a card is found in ids, and named", () => {
  const long = "1".repeat(17);
  for (const [id, blanked] of [
    ["secret-agent", "secret"],
    ["tokenizer", "token"],
    ["my-PassWord", "PassWord"],
    ["api_key", "api_key"],
    ["apikey1", "apikey"],
    ["api-keys", "api-key"],
    ["credentials", "credential"],
    ["\u017fecret", "\u017fecret"],
    [`a-${long}-b`, long],
    [`a-${long}111-b`, `${long}111`],
  ] as const)
    assert.equal(blankedIn(id), blanked);
  for (const id of ["acme-support", `a-${long.slice(1)}-b`, `a-${long}1111-b`, `a${long}`])
    assert.equal(blankedIn(id), undefined);
});

test("an alias is always one that peers take", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 100 }), fc.array(fc.string()), (name, key) => {
      assert.match(runtimeAlias(name, key), /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);
      assert.equal(runtimeAlias(name, key), runtimeAlias(name, key));
    }),
  );
});

test("an alias without a key is the name's slug alone", () => {
  assert.equal(runtimeAlias("Support Room", []), "support-room");
  assert.equal(runtimeAlias("x".repeat(80), []), "x".repeat(64));
});

test("a runtime id is a valid agent id, or there is none", () => {
  const bots = fc.stringMatching(/^[a-z0-9-]{1,64}$/);
  fc.assert(
    fc.property(bots, fc.string({ unit: "binary" }), fc.string(), (bot, alias, key) => {
      try {
        assert.equal(agentId().safeParse(runtimeAgentId(bot, alias, key)).success, true);
      } catch (error) {
        assert.ok(error instanceof RangeError);
      }
    }),
  );
});

test("a task id is valid and differs with each of its three parts", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
  fc.assert(
    fc.property(id, id, id, id, (from, to, message, other) => {
      const task = taskIdOf(from, to, message);
      assert.equal(taskId().safeParse(task).success, true);
      if (other !== message) assert.notEqual(taskIdOf(from, to, other), task);
      if (other !== from) assert.notEqual(taskIdOf(other, to, message), task);
    }),
  );
});
