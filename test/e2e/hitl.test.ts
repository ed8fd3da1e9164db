import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { awsSettings } from "../../infra/local/aws.ts";
import { synthesize } from "../../infra/synth.ts";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { fetchCard } from "../../shared/remotes/fetch-card.ts";
import { controlMessage, isTerminal } from "../../shared/wire/index.ts";
import { run } from "../cli/run.ts";
import { blast, extension, hitl, type RemoteServer, streamingServer } from "../remotes/servers/index.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

/** A minute of the deployment's is a second and a half; who answers in these tests has minutes. */
const TIME_SCALE = 40;
const LONG_MS = 180_000 * TIME_SCALE;
const SHORT_MS = 2_000 * TIME_SCALE;

const SKILLS = {
  near: [{ mode: "autonomous" }, "self"],
  far: [{ mode: "autonomous" }, "public"],
  silent: [undefined, undefined],
  repo: [undefined, "repo"],
  garbled: [{ mode: "whatever" }, "self"],
  veto: [{ mode: "veto", vetoTtlMs: LONG_MS }, "project"],
  brief: [{ mode: "veto", vetoTtlMs: SHORT_MS }, "project"],
  gated: [{ mode: "gated" }, "self"],
  compound: [{ mode: "compound" }, "fleet"],
  operator: [{ mode: "gated", reviewer: "operator" }, "self"],
} as const satisfies Record<string, readonly [object | undefined, string | undefined]>;
type SkillName = keyof typeof SKILLS;

const cwd = mkdtempSync(join(tmpdir(), "sluice-hitl-"));
let server: RemoteServer;
let sluice: Sluice;

const named = (at: 0 | 1, as: (value: unknown) => object) =>
  Object.fromEntries(
    Object.entries(SKILLS).flatMap(([name, of]) => (of[at] === undefined ? [] : [[name, as(of[at])]])),
  );

before(async () => {
  server = await streamingServer({
    card: {
      skills: Object.keys(SKILLS),
      extensions: [
        hitl(named(0, (entry) => Object(entry))),
        blast(named(1, (radius) => ({ radius }))),
        extension("cost-v1"),
      ],
    },
  });
  mkdirSync(join(cwd, "agents"));
  mkdirSync(join(cwd, ".sluice"));
  writeFileSync(
    join(cwd, "agents.yaml"),
    `deployment: acme
defaults: { acceptFromRuntimes: [${SENDER}], statusEverySec: 0 }
agents:
  audit: { remote: auditor }
  hasty: { remote: hurrier }
remotes:
  - { name: auditor, url: "${server.url}" }
  - { name: hurrier, url: "${server.url}", hitl: { radius: repo, approvalSec: ${SHORT_MS / 1_000} } }
outbound: { allow: ["${server.origin}"] }
`,
  );
  const { assemblyDir } = await synthesize({
    agentsDir: join(cwd, "agents"),
    agentsYaml: join(cwd, "agents.yaml"),
    outDir: join(cwd, "cdk.out"),
  });
  sluice = await startSluice({ assemblyDir, timeScale: TIME_SCALE, dataDir: join(cwd, ".sluice") });
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
  for (const name of ["auditor", "hurrier"]) await knowCard(name);
});
after(async () => {
  await sluice?.stop();
  await server?.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** What the function `cards` does when it refreshes a card: these tests do not wait for it. */
async function knowCard(id: string): Promise<void> {
  const { host } = sluice;
  const ddb = new DynamoDBClient(awsSettings(host.endpoints.dynamodb));
  const peers = dynamoPeers({ client: DynamoDBDocumentClient.from(ddb), table: host.tableName });
  const fetched = await fetchCard({ url: server.url, send: (to, init) => fetch(to, init), now: Date.now });
  assert.ok(fetched.kind === "card", JSON.stringify(fetched));
  const { card, path } = fetched;
  const facts = { transport: "http" as const, id, url: server.url, path, card, notes: [] };
  await peers.putFacts({ ...facts, signature: { state: "unsigned" }, firstSeen: Date.now() }, 0);
  ddb.destroy();
}

type Asked = { readonly to: string; readonly taskId: string };

/** Has a remote agent do what a script says (test/remotes/servers/script.ts). */
async function ask(skillId: SkillName, lines: readonly string[] = ["complete done"], id = "audit") {
  const to = `acme-${id}`;
  const a2a = { parts: [{ text: lines.join("\n") }] };
  const { taskId } = await sluice.peer.ask(to, { a2a, channelRef: id, skillId });
  return { to, taskId };
}

const events = async ({ taskId }: Asked) => (await sluice.peer.events(taskId)).map(({ event }) => event);
const told = async (task: Asked) =>
  (await events(task)).map(({ state, content }) => `${state.replace("TASK_STATE_", "")} ${content}`);
const sent = ({ taskId }: Asked) =>
  server.executions.filter(({ messageId }) => messageId.startsWith(taskId)).length;

/** Waits until the last that was told of a task is so. */
const last = (task: Asked, isSo: (text: string) => boolean) =>
  until(task.taskId, async () => isSo((await told(task)).at(-1) ?? ""), { seen: () => told(task) });

/** Waits until the task asks for approval by a prompt like this; nothing more was sent by then. */
async function asks(task: Asked, prompt: RegExp, sentBefore = 0) {
  await last(task, (text) => text.startsWith("AUTH_REQUIRED") && prompt.test(text));
  assert.equal(sent(task), sentBefore, "nothing is sent before it is agreed to");
}

async function control(task: Asked, kind: "auth_reply" | "input_reply" | "cancel", a2a: unknown) {
  const { to, taskId } = task;
  const revision = ((await events(task)).at(-1)?.revision ?? 0) + 1;
  const createdAt = new Date().toISOString();
  const { subject, msgId, body } = controlMessage({
    from: SENDER,
    to,
    taskId,
    kind,
    revision,
    a2a,
    createdAt,
  });
  await sluice.peer.publish(subject, msgId, body);
}
const approve = (task: Asked, given = true) =>
  control(task, "auth_reply", given ? { approve: true } : { approve: false, denyReason: "not today" });

async function end({ taskId }: Asked) {
  const event = (await sluice.peer.outcome(taskId)).at(-1)?.event;
  assert.ok(event !== undefined && isTerminal(event.state));
  return event;
}

async function done(task: Asked): Promise<void> {
  const { state, error } = await end(task);
  assert.equal(state, "TASK_STATE_COMPLETED", error?.message);
  assert.equal(sent(task), 1);
}

async function denied(task: Asked): Promise<void> {
  assert.equal((await end(task)).error?.code, "auth_not_satisfied");
  assert.equal(sent(task), 0);
}

const metadataOf = ({ taskId }: Asked) =>
  server.executions.find(({ messageId }) => messageId.startsWith(taskId))?.requestMetadata ?? {};

test("autonomous and near: it goes ahead in silence", async () => {
  const task = await ask("near");
  await done(task);
  assert.deepEqual(await told(task), ["WORKING ", "COMPLETED done"]);
  assert.equal(metadataOf(task)["x-hitl-mode"], "autonomous");
  assert.equal(metadataOf(task)["x-blast-radius"], "self");
});

test("notification: the requester is told first; undeclared is never autonomous, nor is what reaches far", async () => {
  for (const [skill, reach] of [
    ["silent", ""],
    ["far", ", which reaches as far as: public"],
  ] as const) {
    const task = await ask(skill);
    await done(task);
    assert.equal((await told(task))[1], `WORKING auditor is given "${skill}"${reach}`);
    assert.equal(metadataOf(task)["x-hitl-mode"], "notification");
  }
});

test("undeclared is gated at repo, and so is an entry that cannot be read", async () => {
  for (const skill of ["repo", "garbled"] as const) {
    const task = await ask(skill);
    await asks(task, /It is not sent unless you approve\./);
    await approve(task);
    await done(task);
    assert.equal(metadataOf(task)["x-hitl-mode"], "gated");
  }
});

test("veto: without a word it goes ahead once its window is over, and not before", async () => {
  const task = await ask("brief");
  await done(task);
  const all = await told(task);
  assert.match(all[1] ?? "", /^AUTH_REQUIRED auditor is to be given "brief".* It is sent in 80 s unless you/);
  assert.equal(all[2], "WORKING no objection was made");
  assert.equal(metadataOf(task)["x-hitl-veto-ttl-ms"], SHORT_MS);
});

test("veto: it can be denied, cancelled, or approved before its window is over", async () => {
  const tasks = await Promise.all([ask("veto"), ask("veto"), ask("veto")]);
  for (const task of tasks) await asks(task, /unless you deny it or cancel the task/);
  const [no, off, yes] = tasks;
  await approve(no, false);
  await denied(no);
  await control(off, "cancel", {});
  assert.equal((await end(off)).state, "TASK_STATE_CANCELED");
  assert.equal(sent(off), 0);
  await approve(yes);
  await done(yes);
});

test("gated: an approval sends it, a denial and a silence do not", async () => {
  const [yes, no, nobody] = await Promise.all([
    ask("gated"),
    ask("gated"),
    ask("silent", ["complete done"], "hasty"),
  ]);
  await asks(yes, /^AUTH_REQUIRED auditor is to be given "gated".*complete done$/s);
  await asks(no, /gated/);
  await approve(yes);
  await approve(no, false);
  await done(yes);
  await denied(no);
  // The file says that it reaches far, and how long an approval is waited for.
  await denied(nobody);
  assert.match((await told(nobody))[1] ?? "", /^AUTH_REQUIRED hurrier is to be given "silent", .*: repo\./);
});

test("compound: each answer is held as well; denied there, the remote's task is cancelled", async () => {
  const script = ["ask Which?", "complete it is {reply}"];
  const [yes, no] = await Promise.all([ask("compound", script), ask("compound", script)]);
  for (const task of [yes, no]) {
    await asks(task, /checkpoint 1/);
    await approve(task);
    await last(task, (text) => text === "INPUT_REQUIRED Which?");
    await control(task, "input_reply", { input: "blue" });
    await asks(task, /checkpoint 2.*blue$/s, 1);
  }
  await approve(yes);
  assert.equal((await end(yes)).content, "it is blue");
  assert.equal(sent(yes), 2);

  await approve(no, false);
  assert.equal((await end(no)).error?.code, "auth_not_satisfied");
  assert.equal(sent(no), 1);
  const there = server.executions.find(({ messageId }) => messageId.startsWith(no.taskId))?.taskId ?? "";
  await until("it is cancelled there", () => server.canceled.includes(there));
});

test("the operator's approval is the operator's alone", async () => {
  const task = await ask("operator");
  await asks(task, /unless the operator approves/);
  await approve(task);
  await asks(task, /only the operator may approve this/);
  const approved = await run(["approve", task.taskId], { cwd });
  assert.equal(approved.code, 0, approved.stderr);
  assert.equal(approved.stdout, `${task.taskId} is approved: step "remote/hold 1"\n`);
  await done(task);
});

test("what the agent tells of itself is in the result, the log and the figures, once", async () => {
  const task = await ask("near", [
    'observe tool-call {"toolCallId":"1","name":"grep","phase":"started"}',
    'observe cost {"usage":{"input_tokens":900,"output_tokens":120},"costUsd":0.004,"success":true}',
    'observe confidence {"confidence":7}',
    "ask Which?",
    'observe worldstate-delta {"deltas":[{"domain":"board","path":"a","op":"inc","value":1}]}',
    'observe cost {"usage":{"input_tokens":1800,"output_tokens":240},"costUsd":0.008,"success":true}',
    'observe confidence "hunter2"',
    "complete done",
  ]);
  await last(task, (text) => text === "INPUT_REQUIRED Which?");
  await control(task, "input_reply", { input: "blue" });
  const { result } = await end(task);
  const { elapsed_ms: _, ...metrics } = result?.metrics ?? {};
  assert.deepEqual(metrics, {
    cost_usd: 0.008,
    input_tokens: 1_800,
    output_tokens: 240,
    confidence: 1,
    success: 1,
    tool_calls: 1,
    worldstate_deltas: 1,
  });
  assert.equal(metadataOf(task)["x-cost-skill"], "near");
  const ofTask = () => sluice.lines.filter((line) => line.includes(task.taskId));
  const ended = await until("it is logged", () => ofTask().find((line) => line.includes("a task has ended")));
  assert.match(ended, /"costUsd":0\.008/);
  assert.ok(!ofTask().some((line) => line.includes("hunter2")));
  const figures = () => sluice.lines.filter((line) => line.includes('"TaskCostUsd"'));
  await until("it is counted", () => figures().length > 0);
  assert.equal(figures().length, 1);
});
