import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import * as z from "zod";
import { confirmed, isSensitive, planDelegation, usedToken } from "../../cli/delegation/confirm.ts";
import { delegationKey } from "../../cli/delegation/key.ts";
import { CliError } from "../../cli/errors.ts";
import { operatorName } from "../../cli/operator.ts";
import { processOutput } from "../../cli/output.ts";
import { newMessageId, type Order, publish, SentBefore, sendTask } from "../../cli/task.ts";
import { ensureStreams, TASKS_STREAM } from "../../shared/nats/streams.ts";
import { readToken, signToken, TOKEN_LIFE_MS } from "../../shared/policy/confirmation.ts";
import { startNats } from "../support/nats-server.ts";
import { onTerminal, skip } from "./on-terminal.ts";
import { openStage, type Stage } from "./peer.ts";
import { run } from "./run.ts";

let stage: Stage;
const cwd = mkdtempSync(join(tmpdir(), "sluice-delegation-"));
const env = { XDG_STATE_HOME: join(cwd, "state") };

before(async () => {
  stage = await openStage();
  const consent = '{ runtimeAgentId: adam-lobby, skillId: "lobby/*" }';
  writeFileSync(
    join(cwd, "agents.yaml"),
    `deployment: acme\nagents: { digest: {} }\ncommand: { delegateTargets: [${consent}] }\n`,
  );
  Object.assign(process.env, env); // what a command on a terminal is given, too
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const ROOM = ["eve-room", "--channel", "room"];
const ask = (...args: string[]) => run(["ask", ...args, "--nats", stage.nats.url], { cwd, env });

/** How many tasks are on the stream: what it refuses, only whoever listens beside it hears. */
const sent = async () => {
  const jsm = await jetstreamManager(stage.nc);
  return (await jsm.streams.info(TASKS_STREAM)).state.messages;
};

const home = {
  deployment: "acme",
  agents: ["digest"],
  delegateTargets: [
    { runtimeAgentId: "adam-lobby", skillId: "lobby/*" },
    { runtimeAgentId: "bob-lobby", skillId: "task" },
  ],
};
const ORDER: Order = {
  from: "acme-cli",
  to: "eve-room",
  channelRef: "room",
  skill: "task",
  message: "hi",
  depth: 1,
};

test("a task is sensitive if it leaves the deployment and the operator has not named whom it goes to", () => {
  const is = (of: Partial<Order>) => isSensitive(home, { ...ORDER, ...of });
  assert.equal(is({}), true);
  assert.equal(is({ to: "acme-digest" }), false);
  // A name that only begins as ours do may be another deployment's.
  assert.equal(is({ to: "acme-digest-2" }), true);
  assert.equal(is({ to: "adam-lobby", channelRef: "lobby" }), false);
  assert.equal(is({ to: "adam-lobby", channelRef: "hall" }), true);
  assert.equal(is({ to: "adam-lobby", channelRef: "hall", skill: "lobby/fly" }), false);
  assert.equal(is({ to: "bob-lobby", skill: "general_task" }), false);
  assert.equal(is({ to: "bob-lobby", skill: "fly" }), true);
  assert.equal(isSensitive({ deployment: "acme", agents: [] }, { ...ORDER, to: "acme-digest" }), true);
});

test("without a person it is refused, and nothing is sent; a token is shown to no program", async () => {
  const count = await sent();
  for (const more of [[], ["--json", "--no-wait"]]) {
    const { code, stdout, stderr } = await ask(...ROOM, "hi", ...more);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /^sluice: token_missing: eve-room is outside of the deployment acme: plan it on a /);
  }
  const planned = await ask(...ROOM, "hi", "--plan");
  assert.equal(planned.code, 0);
  assert.match(
    planned.stdout,
    /to {7}eve-room \(room\)\n {2}skill {4}task\n {2}message {2}2 characters, sha256:/,
  );
  assert.match(planned.stdout, /risks {4}remote_task, data_egress/);
  const json = await ask(...ROOM, "hi", "--plan", "--json");
  assert.partialDeepStrictEqual(json.json(), [
    { to: "eve-room", sensitive: true, risks: ["remote_task", "data_egress"] },
  ]);
  for (const { stdout, stderr } of [planned, json]) {
    assert.match(stderr, /terminal only/);
    assert.doesNotMatch(stdout + stderr, /eyJ/);
  }
  assert.equal(await sent(), count);
  const own = await ask("digest", "hi", "--plan");
  assert.match(own.stdout, /it needs no confirmation/);
  assert.equal((await ask("adam-lobby", "--channel", "lobby", "hi")).code, 0);
  assert.equal(await sent(), count + 1);
});

test("on a terminal a person says yes or no, or takes the token to a program, which sends it once", {
  skip,
}, async () => {
  const at = `--channel room --nats ${stage.nats.url}`;
  const count = await sent();
  const asked = onTerminal(`ask eve-room hello ${at}`, cwd);
  asked.type("no\n");
  assert.equal(await asked.exitCode(), 1, asked.shown());
  assert.match(asked.shown(), /5 characters, sha256:[\s\S]*send it\? \(yes or no\)[\s\S]*nothing is sent/);
  assert.equal(await sent(), count);
  const again = onTerminal(`ask eve-room hello ${at}`, cwd);
  again.type("yes\n");
  assert.equal(await again.exitCode(), 0, again.shown());
  assert.equal(await sent(), count + 1);

  const planned = onTerminal(`ask eve-room hello --plan ${at}`, cwd);
  assert.equal(await planned.exitCode(), 0, planned.shown());
  assert.equal(await sent(), count + 1);
  const [, token = ""] =
    /--confirm (eyJ[\w.-]+)/.exec(planned.shown().replaceAll(/\r?\n(?=[\w.-]*\.)/g, "")) ?? [];
  assert.equal((await ask(...ROOM, "hello", "--confirm", token)).code, 0);
  assert.equal(await sent(), count + 2);
  const used = await ask(...ROOM, "hello", "--confirm", token);
  assert.deepEqual(
    [used.code, /^sluice: token_used: the task was sent already/.test(used.stderr)],
    [1, true],
    used.stderr,
  );
  assert.equal(await sent(), count + 2);
});

test("a token that is altered, foreign or expired is refused, each in its words", async () => {
  const of = { home, order: ORDER, servers: ["nats://a:4222"], out: processOutput(false), env };
  const key = delegationKey(env);
  const verdict = async (token: string, more: Partial<typeof of> = {}) => {
    try {
      return (await confirmed({ ...of, ...more }, token)).onceAs;
    } catch (error) {
      assert.ok(error instanceof CliError);
      assert.equal(error.exitCode, 1);
      return error.message.split(":", 1)[0];
    }
  };
  const change = newMessageId();
  // What is planned is what a person is shown: the digest is that of the plan.
  const shown: string[] = [];
  planDelegation({ ...of, out: { ...of.out, interactive: true, line: (text) => void shown.push(text) } });
  const token = z.string().parse(/--confirm (\S+)$/.exec(shown.at(-1) ?? "")?.[1]);
  const claims = readToken(key, token);
  assert.match(String(await verdict(token)), /^msg_[0-9a-f]{24}$/);
  for (const order of [
    { ...ORDER, message: "hi!" },
    { ...ORDER, skill: "fly" },
    { ...ORDER, channelRef: "hall" },
    { ...ORDER, from: "acme-exec" },
    { ...ORDER, depth: 2 },
    { ...ORDER, timeoutSec: 7 },
  ])
    assert.equal(await verdict(token, { order }), "token_altered", JSON.stringify(order));
  assert.equal(await verdict(token, { servers: ["nats://b:4222"] }), "token_altered");
  assert.equal(await verdict(`${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`), "token_altered");
  assert.equal(await verdict(signToken(Buffer.alloc(32), claims, Date.now())), "token_altered");
  assert.equal(await verdict(token, { order: { ...ORDER, to: "mallory-main" } }), "token_foreign");
  const sign = (more: object, at = Date.now()) => signToken(key, { ...claims, change, ...more }, at);
  assert.equal(await verdict(sign({})), change);
  assert.equal(await verdict(sign({ operator: `not ${operatorName()}` })), "token_foreign");
  assert.equal(await verdict(sign({ change: "chg_0123456789abcdef" })), "token_foreign");
  assert.equal(await verdict(sign({}, Date.now() - TOKEN_LIFE_MS)), "token_expired");
  assert.match(usedToken().message, /^token_used: /);
});

test("of many who use one token at the same time one sends the task", async () => {
  const nats = await startNats();
  const nc = await connect({ servers: nats.url });
  await ensureStreams(await jetstreamManager(nc));
  const order = { ...ORDER, onceAs: newMessageId() };
  const tries = await Promise.allSettled(Array.from({ length: 8 }, () => sendTask(nc, order)));
  assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
  for (const of of tries)
    if (of.status === "rejected") assert.ok(of.reason instanceof SentBefore, String(of.reason));
  // Once the stream has forgotten which ids it has seen, the subject still knows.
  const of = { subject: `a2a.v1.task.acme-cli.eve-room.${order.onceAs}`, msgId: "forgotten", body: "{}" };
  await assert.rejects(publish(nc, of, { once: true }), SentBefore);
  await nc.close();
  await nats.stop();
});

test("its key is the user's own, and nobody else may read it", () => {
  const path = join(env.XDG_STATE_HOME, "sluice/confirmation.key");
  delegationKey(env);
  assert.deepEqual([statSync(path).mode & 0o777, statSync(join(path, "..")).mode & 0o777], [0o600, 0o700]);
  assert.deepEqual(delegationKey(env), Buffer.from(readFileSync(path, "utf8"), "base64url"));
  chmodSync(path, 0o644);
  assert.throws(() => delegationKey(env), /only its owner may read/);
  chmodSync(path, 0o600);
  assert.throws(
    () => delegationKey({ XDG_STATE_HOME: join(path, "in") }),
    /cannot be made: .*; set XDG_STATE_HOME/,
  );
});
