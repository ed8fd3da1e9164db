import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AckPolicy, jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { askTask, exitCodeOf } from "../../cli/ask.ts";
import { CliError, TimedOut } from "../../cli/errors.ts";
import { readWords } from "../../cli/words.ts";
import { EVENTS_STREAM } from "../../shared/nats/streams.ts";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  rejectedEvent,
  resultEvent,
  statusEvent,
} from "../../shared/wire/index.ts";
import { echoing, now, openStage, type Script, type Stage } from "./peer.ts";
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

/** Runs `ask` against the stage. */
const ask = (script: Script, ...args: string[]) => {
  stage.script = script;
  return run(["ask", ...args, "--nats", stage.nats.url], { cwd });
};
const kinds = (lines: unknown[]) => lines.map((line) => z.looseObject({ kind: z.string() }).parse(line).kind);
const lastTask = () => {
  const got = stage.tasks.at(-1);
  assert(got !== undefined);
  return got;
};

const working: Script = async ({ task }, say) => {
  const content = "result text";
  const digest = `sha256:${"a".repeat(64)}`;
  const of = { id: "report", name: "report.json", mediaType: "application/json", digest, sizeBytes: 1234 };
  const artifact = artifactRef(task.taskId, of);
  const state = "TASK_STATE_WORKING";
  await say(acceptedEvent(task, now()));
  await say(statusEvent(task, { revision: 2, state, content: "counting" }, now()));
  await say(artifactEvent(task, { revision: 3, artifact }, now()));
  const result = {
    revision: 4,
    state: "TASK_STATE_COMPLETED",
    content,
    artifacts: [artifact],
    metrics: {},
  } as const;
  await say(resultEvent(task, result, now()));
};

test("shows every event and the whole result as plain lines, and exits 0", async () => {
  const { code, stdout, stderr } = await ask(working, "digest", "hello", "world");
  assert.equal(stderr, "");
  assert.equal(code, 0);
  const { task } = lastTask();
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    `sent       ${task.taskId} to acme-digest`,
    `accepted   ${task.taskId}`,
    "working    counting",
    `artifact   report.json  application/json  1.2 kB  sha256:${"a".repeat(64)}`,
    `read it with ./sluice artifact ${task.taskId}`,
    "completed",
    "result text",
  ]);
});

test("sends what a peer sends: short id, channelRef, skill, text and deadline", async () => {
  await ask(echoing, "digest", "hello", "world", "--timeout", "7.5", "--skill", "other");
  const { task, request } = lastTask();
  assert.equal(task.from, "acme-cli");
  assert.equal(task.to, "acme-digest");
  assert.equal(request.channelRef, "digest");
  assert.equal(request.skillId, "digest/other");
  assert.deepEqual(request.a2a, { kind: "text", text: "hello world" });
  assert.deepEqual(request.delivery, { timeoutSec: 8, maxDelegationDepth: 1 });
  for (const depth of [0, 12]) {
    await ask(echoing, "digest", "hello", "--depth", `${depth}`);
    assert.deepEqual(lastTask().request.delivery, { maxDelegationDepth: depth });
  }
});

test("takes whole runtime ids, of others with --channel", async () => {
  await ask(echoing, "acme-unlisted", "hi", "--from", "adam-lobby");
  assert.deepEqual([lastTask().task.from, lastTask().task.to], ["adam-lobby", "acme-unlisted"]);
  assert.equal(lastTask().request.channelRef, "unlisted");
  await ask(echoing, "eve-room", "hi", "--channel", "room-1");
  assert.deepEqual([lastTask().task.to, lastTask().request.channelRef], ["eve-room", "room-1"]);
});

test("--json writes each event as one object", async () => {
  const finished = await ask(working, "digest", "x", "--json");
  assert.deepEqual(kinds(finished.json()), ["accepted", "status", "artifact", "result"]);
  assert.equal(finished.code, 0);
});

test("a rejected task exits 1 with the reason", async () => {
  const rejecting: Script = ({ task }, say) =>
    say(rejectedEvent(task, { code: "sender_not_allowed", message: "sender_not_allowed: not you" }, now()));
  const { code, stdout } = await ask(rejecting, "digest", "x");
  assert.equal(code, 1);
  assert.match(stdout, /^rejected {3}sender_not_allowed: not you$/m);
});

test("failed and cancelled tasks exit 1, one whose deadline passed 124", async () => {
  const ending = (state: "FAILED" | "CANCELED", code: "internal" | "canceled" | "timeout"): Script => {
    return async ({ task }, say) => {
      await say(acceptedEvent(task, now()));
      const end = {
        revision: 2,
        state: `TASK_STATE_${state}`,
        error: { code, message: "so it is" },
      } as const;
      await say(
        state === "CANCELED"
          ? statusEvent(task, end, now())
          : resultEvent(task, { ...end, metrics: {} }, now()),
      );
    };
  };
  assert.equal((await ask(ending("FAILED", "internal"), "digest", "x")).code, 1);
  const canceled = await ask(ending("CANCELED", "canceled"), "digest", "x");
  assert.equal(canceled.code, 1);
  assert.match(canceled.stdout, /^canceled {3}so it is$/m);
  assert.equal((await ask(ending("FAILED", "timeout"), "digest", "x")).code, 124);
});

test("nobody answering within --timeout exits 124 and names the task", async () => {
  const { code, stderr } = await ask(async () => {}, "digest", "x", "--timeout", "0.3");
  assert.equal(code, 124);
  assert.match(
    stderr,
    new RegExp(
      `^sluice: timed out: (${lastTask().task.taskId}) did not end within 0.3 s; nobody has taken it yet, and it waits: ./sluice status \\1\n$`,
    ),
    "what nobody has accepted cannot be cancelled",
  );
  const slow: Script = ({ task }, say) => say(acceptedEvent(task, now()));
  const late = await ask(slow, "digest", "x", "--timeout", "0.5");
  assert.equal(late.code, 124);
  assert.match(
    late.stderr,
    /; it may still go on: \.\/sluice status task_\w+, or \.\/sluice cancel task_\w+\n$/,
  );
});

test("--no-wait prints the task's id alone", async () => {
  const { code, stdout } = await ask(async () => {}, "digest", "x", "--no-wait");
  assert.equal(code, 0);
  assert.match(stdout, /^task_[0-9a-f]{24}\n$/);
});

test("Ctrl-C exits 130", async () => {
  const heard = new Promise<void>((resolve) => {
    stage.script = async () => resolve();
  });
  const running = start(["ask", "digest", "x", "--nats", stage.nats.url], { cwd });
  await heard;
  running.signal("SIGINT");
  assert.equal((await running.finished).code, 130);
});

test("misuse exits 2 with what to do", async () => {
  for (const [args, expected] of [
    [["ask"], /missing required argument 'agent'/],
    [["ask", "digest"], /nothing to ask: add a message, or --file/],
    [["ask", "digest", "x", "--timeout", "0"], /more than 0/],
    [["ask", "digest", "x", "--timeout", "2147484"], /at most 2147483/],
    [["ask", "digest", "x", "--depth", "13"], /whole number from 0 to 12/],
    [["ask", "digest", "x", "--depth", "-1"], /whole number from 0 to 12/],
    [["ask", "digest", "x", "--from", "a.b"], /Expected a runtime id/],
    [["ask", "no such", "x"], /no agent "no such"; known here are/],
    [["ask", "digset", "x"], /no agent "digset", did you mean digest\?/],
    [["ask", "digest", "x", "--colour"], /unknown option/],
    [["ask", "digest", "--file", "/nonexistent"], /--file \/nonexistent: cannot be read/],
    [["ask", "digest", "x", "--creds", "/nonexistent"], /nonexistent: cannot be read/],
    [["ask", "digest", "x", "--ca", "/nonexistent"], /--ca \/nonexistent: cannot be read/],
    [["ask", "digest", "x", "--ca", import.meta.filename], /--ca .*: expected certificates as PEM text/],
    [["frobnicate"], /unknown command/],
    [[], /Usage/],
  ] as const) {
    const { code, stderr } = await run([...args, ...(args.length > 1 ? ["--nats", stage.nats.url] : [])], {
      cwd,
    });
    assert.match(stderr, expected);
    assert.equal(code, 2, args.join(" "));
  }
  assert.equal((await run(["--help"])).code, 0);
});

test("no server, and a server without streams, exit 3", async () => {
  const { code, stderr } = await run(["ask", "digest", "x", "--nats", "nats://127.0.0.1:1"], { cwd });
  assert.equal(code, 3);
  assert.match(
    stderr,
    /^sluice: cannot reach NATS at nats:\/\/127.0.0.1:1: .*; see that a server runs there, or name another/,
  );
  const { startNats } = await import("../support/nats-server.ts");
  const bare = await startNats();
  const without = await run(["ask", "digest", "x"], { cwd, env: { NATS_URL: bare.url } });
  await bare.stop();
  assert.equal(without.code, 3);
  assert.match(without.stderr, /no streams of agents yet: start Sluice/);
});

test("an executor may choose task ids of its own, repeat events, and add a late result", async () => {
  const foreign: Script = async ({ task }, say) => {
    const own = { ...task, taskId: "job-77" };
    await say(acceptedEvent(own, now()));
    await say({ ...acceptedEvent(own, now()), msgId: "again" });
    await say(
      statusEvent({ ...task, taskId: "another" }, { revision: 2, state: "TASK_STATE_FAILED" }, now()),
    );
    const end = {
      revision: 2,
      state: "TASK_STATE_CANCELED",
      error: { code: "canceled", message: "" },
    } as const;
    await say(statusEvent(own, end, now()));
    await say(resultEvent(own, { revision: 2, state: "TASK_STATE_COMPLETED", metrics: {} }, now()));
  };
  const finished = await ask(foreign, "digest", "x", "--json");
  assert.deepEqual(kinds(finished.json()), ["accepted", "status"]);
  assert.equal(finished.code, 1);
});

test("what a peer writes cannot reach the terminal's controls", async () => {
  const nasty = "\u001b]0;owned\u0007\u001b[2Jred\u009b31m\u202e!\r\nnext";
  const hostile: Script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: nasty }, now()));
    await say(
      resultEvent(task, { revision: 3, state: "TASK_STATE_COMPLETED", content: nasty, metrics: {} }, now()),
    );
  };
  const plain = await ask(hostile, "digest", "x");
  const json = await ask(hostile, "digest", "x", "--json");
  for (const { stdout } of [plain, json]) assert.doesNotMatch(stdout, /(?!\n)\p{Cc}|\u202e/u);
  assert.match(plain.stdout, /^next$/m);
  assert.equal(z.object({ content: z.string() }).parse(json.json().at(-1)).content, nasty);
});

test("--file: text, stdin, and JSON as data", async () => {
  const path = join(cwd, "in.json");
  writeFileSync(path, '{ "a": [1] }');
  await ask(echoing, "digest", "--file", path);
  assert.deepEqual(lastTask().message, { parts: [{ data: { a: [1] } }] });
  await ask(echoing, "digest", "look at", "--file", path);
  assert.deepEqual(lastTask().message, { parts: [{ text: "look at" }, { data: { a: [1] } }] });
  stage.script = echoing;
  const { code } = await run(["ask", "digest", "--file", "-", "--nats", stage.nats.url], {
    cwd,
    stdin: "zwölf\n",
  });
  assert.equal(code, 0);
  assert.deepEqual(lastTask().message, { parts: [{ text: "zwölf\n" }] });
});

test("a file must be what its name says", async () => {
  const broken = join(cwd, "broken.json");
  writeFileSync(broken, "{");
  await assert.rejects(readWords([], broken), /broken.json: expected JSON/);
  writeFileSync(broken, Buffer.from([0x22, 0xff, 0x22]));
  await assert.rejects(readWords([], broken), /expected UTF-8 text/);
});

test("a message larger than the server takes exits 2", async () => {
  const { code, stderr } = await (async () => {
    stage.script = echoing;
    const stdin = "x".repeat(1_048_576);
    return run(["ask", "digest", "--file", "-", "--nats", stage.nats.url], { cwd, stdin });
  })();
  assert.equal(code, 2);
  assert.match(stderr, /the message has \d+ bytes as encoded; the server takes 1048576/);
});

test("the durable of the agent it acts as stays as it is, and no consumer stays behind", async () => {
  const jsm = await jetstreamManager(stage.nc);
  const durable = "a2a_events_acme-cli";
  await jsm.consumers.add(EVENTS_STREAM, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    filter_subject: "a2a.v1.event.*.acme-cli.>",
  });
  const before = await jsm.consumers.info(EVENTS_STREAM, durable);
  await ask(echoing, "digest", "x");
  const after = await jsm.consumers.info(EVENTS_STREAM, durable);
  assert.deepEqual(after.delivered, before.delivered);
  assert.equal(after.num_pending, before.num_pending + 2);
  const names = [];
  for await (const { name } of jsm.consumers.list(EVENTS_STREAM)) names.push(name);
  assert.deepEqual(names.filter((name) => name !== durable).length <= 1, true, names.join(" "));
});

test("askTask: the terminal event, the time limit, the signal", async () => {
  const order = { from: "acme-cli", to: "acme-echo", channelRef: "echo", skill: "task", message: "hi" };
  stage.script = echoing;
  const seen: string[] = [];
  const end = await askTask(stage.nc, {
    ...order,
    timeoutMs: 10_000,
    onEvent: ({ kind }) => seen.push(kind),
  });
  assert.deepEqual([end.state, end.content, seen], ["TASK_STATE_COMPLETED", "hi", ["accepted", "result"]]);

  stage.script = async () => {};
  await assert.rejects(askTask(stage.nc, { ...order, timeoutMs: 50 }), TimedOut);
  const stop = new AbortController();
  const waiting = askTask(stage.nc, {
    ...order,
    timeoutMs: 10_000,
    onSent: () => stop.abort(),
    signal: stop.signal,
  });
  await assert.rejects(waiting, { name: "AbortError" });
});

test("a lost server is waited for", async () => {
  await using own = await openStage();
  const order = { from: "acme-cli", to: "acme-echo", channelRef: "echo", skill: "task", message: "hi" };
  own.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await own.nats.restart();
    // Fails once, when the connection breaks, and then waits for the new one.
    await own.nc.flush().catch(() => own.nc.flush());
    await say(resultEvent(task, { revision: 2, state: "TASK_STATE_COMPLETED", metrics: {} }, now()));
  };
  const end = await askTask(own.nc, { ...order, timeoutMs: 60_000 });
  assert.equal(end.state, "TASK_STATE_COMPLETED");
});

test("a usage error has one form, a mistyped agent a hint, and the command a version", async () => {
  for (const [args, words] of [
    [
      ["ask", "digset", "x"],
      /^sluice: no agent "digset", did you mean digest\?; known here are digest, echo/,
    ],
    [["ask", "digest", "x", "--depth", "13"], /^sluice: option '--depth <n>' argument '13' is invalid/],
    [["sing"], /^sluice: unknown command 'sing'/],
  ] as const) {
    const { code, stderr } = await run(args.length > 1 ? [...args, "--nats", stage.nats.url] : args, { cwd });
    assert.equal(code, 2);
    assert.match(stderr, words);
  }
  const { code, stdout } = await run(["--version"], { cwd });
  assert.deepEqual([code, /^\d+\.\d+\.\d+\n$/.test(stdout)], [0, true]);
});

test("that nobody listens for an agent is said, once", async () => {
  const { code, stderr } = await ask(async () => {}, "acme-nobody", "x", "--timeout", "4");
  assert.equal(code, 124);
  assert.match(stderr, /^sluice: nobody listens for acme-nobody now; the task waits until somebody does/);
  assert.equal(stderr.match(/nobody listens/g)?.length, 1);
});

test("exit codes", async () => {
  assert.equal(exitCodeOf({ state: "TASK_STATE_WORKING", error: null }), null);
  assert.equal(exitCodeOf({ state: "TASK_STATE_INPUT_REQUIRED", error: null }), null);
  assert.equal(exitCodeOf({ state: "TASK_STATE_COMPLETED", error: null }), 0);
  await assert.rejects(readWords([], undefined), CliError);
});

test("data of the progress is for programs alone", async () => {
  const data = { done: 3, of: 9 };
  const script: Script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(
      statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "counting", data }, now()),
    );
    await say(resultEvent(task, { revision: 3, state: "TASK_STATE_COMPLETED", metrics: {} }, now()));
  };
  const lines = (await ask(script, "digest", "x", "--json")).json();
  const told = lines.map((line) => z.looseObject({ data: z.unknown().optional() }).parse(line).data);
  assert.deepEqual(told, [undefined, data, undefined]);
  assert.match((await ask(script, "digest", "x")).stdout, /^working {4}counting$/m);
});
