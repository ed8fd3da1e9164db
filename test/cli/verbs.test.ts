import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { timing } from "../../shared/config/timing.ts";
import { ensureConsumers } from "../../shared/nats/streams.ts";
import { acceptedEvent, rejectedEvent, resultEvent, statusEvent } from "../../shared/wire/index.ts";
import { echoing, now, openStage, type Stage } from "./peer.ts";
import { run, start } from "./run.ts";

let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  cwd = mkdtempSync(join(tmpdir(), "sluice-cli-"));
  writeFileSync(
    join(cwd, "agents.yaml"),
    `deployment: acme
agents: { digest: {}, echo: {} }
command: { delegateTargets: [{ runtimeAgentId: "*", skillId: "*" }] }
`,
  );
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const sluice = (...args: string[]) => run([...args, "--nats", stage.nats.url], { cwd });

/** Sends a task that the executor answers by the stage's script, and returns its id. */
async function send(agent: string, from: string): Promise<string> {
  const { stdout, code } = await sluice("ask", agent, "x", "--no-wait", "--from", from);
  assert.equal(code, 0);
  return stdout.trim();
}

test("status lists the recent tasks of one sender, answered or not", async () => {
  stage.script = echoing;
  const done = await send("digest", "lister");
  stage.script = ({ task }, say) => say(rejectedEvent(task, { code: "overloaded", message: "full" }, now()));
  await send("digest", "lister");
  const rejected = stage.tasks.at(-1)?.task.taskId;
  stage.script = async () => {};
  const waiting = await send("echo", "lister");
  await send("echo", "somebody-else");

  const { stdout, code } = await sluice("status", "--from", "lister");
  assert.equal(code, 0);
  const rows = stdout.trimEnd().split("\n").slice(1);
  assert.match(rows[0] ?? "", new RegExp(`^${done} .*completed +acme-digest .* x$`));
  assert.match(rows[1] ?? "", new RegExp(`^${rejected} .*rejected +acme-digest .* overloaded: full$`));
  assert.match(rows[2] ?? "", new RegExp(`^${waiting} .*sent +acme-echo .* no answer yet$`));
  assert.equal(rows.length, 3);

  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    const question = { revision: 2, state: "TASK_STATE_INPUT_REQUIRED", content: "Which?" } as const;
    await say(statusEvent(task, question, now()));
  };
  const asking = await send("digest", "asker");
  stage.script = echoing;
  for (let n = 0; n < 2; n++) await send("digest", "asker");
  const few = await sluice("status", "--from", "asker", "--limit", "1");
  const [, first, ...later] = few.stdout.trimEnd().split("\n");
  assert.match(
    first ?? "",
    new RegExp(`^${asking} +input required `),
    "what waits for somebody is shown always",
  );
  assert.equal(later.length, 2, few.stdout);

  const json = await sluice("status", "--from", "lister", "--json", "--limit", "2");
  const states = json.json().map((task) => z.looseObject({ state: z.string().nullable() }).parse(task).state);
  assert.deepEqual(states, ["TASK_STATE_REJECTED", null]);
  assert.match((await sluice("status", "--from", "nobody")).stdout, /^no tasks of nobody in the last 24 h$/m);
});

test("status of one task shows its whole history", async () => {
  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "halfway" }, now()));
    const error = { code: "internal", message: "it broke" } as const;
    await say(resultEvent(task, { revision: 3, state: "TASK_STATE_FAILED", error, metrics: {} }, now()));
  };
  const task = await send("digest", "historian");
  const { stdout, code } = await sluice("status", task);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^${task}  failed\\nhistorian → acme-digest\\n`));
  assert.doesNotMatch(stdout, /^halfway$/m, "what was said on the way is not the result");
  assert.match(stdout, /1 {2}accepted .*\n.* 2 {2}working +halfway\n.* 3 {2}failed +internal: it broke\n/);
  const [view] = (await sluice("status", task, "--json")).json();
  const shape = z.looseObject({ state: z.string(), revision: z.number(), events: z.array(z.unknown()) });
  const { state, revision, events } = shape.parse(view);
  assert.deepEqual([state, revision, events.length], ["TASK_STATE_FAILED", 3, 3]);

  const short = await sluice("status", task.slice("task_".length, -2));
  assert.equal(short.stdout, stdout);

  const unknown = await sluice("status", "task_ffff");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /task task_ffff: no event tells of it/);
  assert.equal((await sluice("status", "a b")).code, 2);
  assert.equal((await sluice("status", "--limit", "0")).code, 2);
});

test("status shows a task that nobody has answered as sent, and what to look at", async () => {
  stage.script = async () => {};
  const task = await send("echo", "waiter");
  const { stdout, code } = await sluice("status", task);
  assert.equal(code, 0);
  assert.match(
    stdout,
    new RegExp(
      `^${task}  sent\\nwaiter → acme-echo\\n\\n.*  no answer yet\\n\\nnobody listens for acme-echo now; the task waits until somebody does\\n$`,
    ),
  );
  assert.equal((await sluice("status", task.slice("task_".length, -2))).stdout, stdout);
  const shape = z.looseObject({ state: z.null(), executor: z.string(), events: z.array(z.unknown()) });
  const { executor, events } = shape.parse((await sluice("status", task, "--json")).json()[0]);
  assert.deepEqual([executor, events], ["acme-echo", []]);
  assert.equal((await sluice("status", task, "--from", "somebody-else")).code, 1);
});

test("a task that was rejected is found by the id that its sender was shown", async () => {
  stage.script = ({ task }, say) => say(rejectedEvent(task, { code: "overloaded", message: "full" }, now()));
  const task = await send("digest", "turned-away");
  await send("digest", "turned-away");
  const { stdout, code } = await sluice("status", task);
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^task_\w+ {2}rejected\nturned-away → acme-digest\n\n.* {2}rejected {3}overloaded: full\n\n/,
  );
  assert.match((await sluice("cancel", task)).stdout, /is over already: rejected/);
});

test("cancel sends the next revision as the task's sender and waits for the end", async () => {
  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "busy" }, now()));
  };
  stage.onControl = async ({ taskId, from, to, reason = "" }, say) => {
    const messageId = stage.tasks.at(-1)?.task.messageId ?? "";
    const error = { code: "canceled", message: reason } as const;
    const end = { revision: 3, state: "TASK_STATE_CANCELED", error } as const;
    await say(statusEvent({ taskId, messageId, from, to }, end, now()));
  };
  const task = await send("digest", "regretful");
  const { stdout, code } = await sluice("cancel", task, "--reason", "changed my mind");
  assert.equal(code, 0);
  assert.match(stdout, /^canceled {3}changed my mind$/m);
  const control = stage.controls.at(-1);
  assert.deepEqual(
    [control?.kind, control?.from, control?.to, control?.taskId, control?.revision, control?.reason],
    ["cancel", "regretful", "acme-digest", task, 3, "changed my mind"],
  );

  const again = await sluice("cancel", task);
  assert.equal(again.code, 0);
  assert.match(again.stdout, /is over already: canceled/);
  assert.equal(stage.controls.length, 1);
});

test("cancel exits 1 when the task ended otherwise or is not known, 124 when nothing happens", async () => {
  stage.script = echoing;
  assert.equal((await sluice("cancel", await send("digest", "late"))).code, 1);
  const unknown = await sluice("cancel", "task_ffff");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /task task_ffff: nobody has accepted it yet/);

  stage.script = ({ task }, say) => say(acceptedEvent(task, now()));
  stage.onControl = async () => {};
  const deaf = await send("digest", "late");
  assert.equal((await sluice("cancel", deaf, "--timeout", "0.2")).code, 124);
  stage.onControl = async ({ taskId, from, to }, say) => {
    const messageId = stage.tasks.at(-1)?.task.messageId ?? "";
    await say(
      resultEvent(
        { taskId, messageId, from, to },
        { revision: 2, state: "TASK_STATE_COMPLETED", metrics: {} },
        now(),
      ),
    );
  };
  const finished = await send("digest", "late");
  assert.equal((await sluice("cancel", finished)).code, 1);
});

test("watch shows what comes, both ways with --from, until Ctrl-C", async () => {
  stage.script = echoing;
  const all = start(["watch", "--json", "--nats", stage.nats.url], { cwd });
  const some = start(["watch", "--from", "acme-echo", "--nats", stage.nats.url], { cwd });
  const jsm = await jetstreamManager(stage.nc);
  const readers = async () => (await jsm.streams.info("A2A_EVENTS")).state.consumer_count;
  for (let tries = 500; tries > 0 && (await readers()) < 2; tries--) await sleep(20);
  await sluice("ask", "echo", "for echo", "--from", "viewer");
  await sluice("ask", "digest", "for digest", "--from", "viewer");
  await sleep(300);
  for (const running of [all, some]) running.signal("SIGINT");
  const [everything, filtered] = await Promise.all([all.finished, some.finished]);
  assert.deepEqual([everything.code, filtered.code], [0, 0]);
  assert.equal(everything.json().length, 4);
  assert.match(
    filtered.stdout,
    /acme-echo → viewer {2}accepted .*\n.*acme-echo → viewer {2}task_\w+ {2}completed +for echo\n$/,
  );
  assert.doesNotMatch(filtered.stdout, /acme-digest/);
});

test("agents says what is known of each, and no more", async () => {
  await using stage = await openStage();
  const sluice = (...args: string[]) => run([...args, "--nats", stage.nats.url], { cwd });
  const jsm = await jetstreamManager(stage.nc);
  await ensureConsumers(jsm, { runtime: "acme-digest", delegates: false }, timing());
  await ensureConsumers(jsm, { runtime: "eve-room", delegates: false }, timing());
  await jsm.streams.add({ name: "KV_A2A_PEERS", subjects: ["$KV.A2A_PEERS.>"], max_msgs_per_subject: 1 });
  const js = jetstream(stage.nc);
  const card = (agentId: string, expiresAt: string, skills: string[]) => ({
    agentId,
    card: { name: agentId, description: "a peer", skills: skills.map((id) => ({ id, name: id })) },
    extendedCard: { channel_ref: "lobby", display_name: `Lobby of ${agentId.split("-")[0]}` },
    expiresAt,
  });
  const put = (record: { agentId: string }) =>
    js.publish(`$KV.A2A_PEERS.${record.agentId}`, JSON.stringify(record));
  await put(card("adam-lobby", "2999-01-01T00:00:00Z", ["lobby/task"]));
  await put(card("bob-lobby", "2001-01-01T00:00:00Z", ["lobby/task"]));
  await js.publish("$KV.A2A_PEERS.broken", "not json");

  mkdirSync(join(cwd, "agents"));
  writeFileSync(
    join(cwd, "agents/digest.ts"),
    `import { defineAgent, skill } from "sluice";
     import * as z from "zod";
     const of = { name: "", description: "", input: z.string(), run: async () => "" };
     export default defineAgent({ id: "digest", description: "", skills: { task: skill(of), more: skill(of) } });`,
  );
  const { stdout, code } = await sluice("agents");
  assert.equal(code, 0);
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual(rows, [
    ["AGENT", "RUNTIME", "STATE", "SKILLS"],
    ["digest", "acme-digest", "not listening now", "more, task"],
    ["echo", "acme-echo", "not running"],
    ["-", "adam-lobby", "shows a card", "lobby/task"],
    ["-", "bob-lobby", "old card", "lobby/task"],
    ["-", "eve-room", "not listening now"],
  ]);

  const pull = await js.consumers.get("A2A_TASKS", "a2a_tasks_eve-room");
  const messages = await pull.consume({ callback: () => {} });
  await stage.nc.flush();
  const listening = await sluice("agents", "--json");
  messages.stop();
  const eve = listening
    .json()
    .map((row) => z.looseObject({ runtime: z.string() }).parse(row))
    .at(-1);
  assert.deepEqual(eve?.durable, { runtime: "eve-room", pulling: 1, waiting: 0, unacknowledged: 0 });

  stage.script = echoing;
  assert.equal((await sluice("ask", "adam-lobby", "hi")).code, 0);
  assert.equal(stage.tasks.at(-1)?.request.channelRef, "lobby");
  for (const alias of ["lobby", "lobby of adam"]) {
    assert.equal((await sluice("ask", alias, "hi")).code, 0, alias);
    assert.equal(stage.tasks.at(-1)?.task.to, "adam-lobby");
  }
  assert.match((await sluice("ask", "Lobby of bob", "hi")).stderr, /no agent "Lobby of bob"/);
  await put(card("carl-lobby", "2999-01-01T00:00:00Z", ["lobby/task"]));
  const several = await sluice("ask", "lobby", "hi");
  assert.equal(several.code, 2);
  assert.match(several.stderr, /several are called so: adam-lobby, carl-lobby; name the one that you mean/);
  const nameless = await sluice("ask", "eve-room", "hi");
  assert.equal(nameless.code, 2);
  assert.match(nameless.stderr, /names no channelRef; add --channel REF/);
});

test("a NATS URL that is none, or that has a password in it, is refused in words that do not show it", async () => {
  const withPassword = "nats://alice:hunter,2@127.0.0.1:4222";
  for (const [args, env, words] of [
    [
      ["--nats", withPassword],
      {},
      /^sluice: --nats: expected a URL without user and password: .*--creds PATH/,
    ],
    [[], { NATS_URL: withPassword }, /^sluice: NATS_URL: expected a URL without user and password/],
    [["--nats", "nats://127.0.0.1:99999"], {}, /^sluice: --nats: expected a URL .* port of at most 65535/],
    [["--nats", ""], {}, /^sluice: --nats: expected a URL/],
  ] as const) {
    const { code, stdout, stderr } = await run(["agents", ...args], { cwd, env });
    assert.equal(code, 2);
    assert.match(stderr, words);
    assert.doesNotMatch(stdout + stderr, /hunter/);
  }
});

test("what is no argument is shown without control characters", async () => {
  const { code, stderr } = await sluice("status", "task_\u001b[2J\u009b31mx");
  assert.equal(code, 2);
  assert.match(stderr, /^sluice: command-argument value 'task_x' is invalid for argument 'task'\. Expected /);
});

test("an empty channelRef is refused before anything is sent", async () => {
  for (const channel of ["", " "]) {
    const { code, stderr } = await sluice("ask", "digest", "hi", "--channel", channel);
    assert.equal(code, 2);
    assert.match(stderr, /^sluice: --channel: expected the channelRef of the agent, got an empty text$/m);
  }
});
