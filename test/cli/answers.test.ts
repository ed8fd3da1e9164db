import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { CliError } from "../../cli/errors.ts";
import { readReply } from "../../cli/words.ts";
import {
  acceptedEvent,
  type Control,
  resultEvent,
  statusEvent,
  type TaskRef,
  type TaskState,
} from "../../shared/wire/index.ts";
import { until } from "../support/until.ts";
import { now, openStage, type Script, type Stage } from "./peer.ts";
import { run, start } from "./run.ts";

let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  cwd = mkdtempSync(join(tmpdir(), "sluice-cli-"));
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { gate: {} }\n");
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});
beforeEach(() => {
  stage.controls.length = 0;
});

const sluice = (...args: string[]) => run([...args, "--nats", stage.nats.url], { cwd });

const status = (task: TaskRef, revision: number, state: TaskState, content: string, data?: unknown) =>
  statusEvent(task, { revision, state, content, ...(data !== undefined && { data }) }, now());
const INPUT = "TASK_STATE_INPUT_REQUIRED";
const AUTH = "TASK_STATE_AUTH_REQUIRED";

/** Accepts a task and asks. */
const asking =
  (state: TaskState, prompt = "Which colour?"): Script =>
  async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(status(task, 2, state, prompt));
  };

/** A task of `peer` that asks. */
async function asked(state: TaskState, prompt?: string): Promise<string> {
  stage.script = asking(state, prompt);
  const { stdout } = await sluice("ask", "gate", "x", "--no-wait", "--from", "peer");
  const task = stdout.trim();
  await until("the question", async () => (await sluice("status", task)).stdout.includes(" required"));
  return task;
}

/** The executor's answer to a control. */
function answering(say: (task: TaskRef, control: Control) => ReturnType<typeof statusEvent>[]): void {
  stage.onControl = async (control, publish) => {
    const { taskId, from, to } = control;
    const messageId = stage.tasks.at(-1)?.task.messageId ?? "";
    for (const event of say({ taskId, messageId, from, to }, control)) await publish(event);
  };
}
const taking = (content: string) =>
  answering((task, { revision }) => [status(task, revision, "TASK_STATE_WORKING", content)]);

function sent() {
  const control = stage.controls.at(-1);
  return [control?.kind, control?.from, control?.to, control?.revision, control?.a2a];
}

test("reply answers as the task's sender, with the next revision, and waits until it is taken", async () => {
  const task = await asked(INPUT);
  taking("input received");
  const { code, stdout } = await sluice("reply", task, "dark", "blue");
  assert.equal(code, 0);
  assert.equal(stdout, "sent       input_reply to acme-gate\nworking    input received\n");
  assert.deepEqual(sent(), ["input_reply", "peer", "acme-gate", 3, { input: "dark blue" }]);
});

test("reply sends data from --data and --file, and text from stdin", async () => {
  taking("input received");
  await sluice("reply", await asked(INPUT), "--data", '{"n":[1]}');
  assert.deepEqual(sent().at(-1), { input: { n: [1] } });
  const path = join(cwd, "answer.json");
  writeFileSync(path, "[true]");
  await sluice("reply", await asked(INPUT), "--file", path);
  assert.deepEqual(sent().at(-1), { input: [true] });
  const args = ["reply", await asked(INPUT), "--file", "-", "--nats", stage.nats.url];
  assert.equal((await run(args, { cwd, stdin: "blau\n" })).code, 0);
  assert.deepEqual(sent().at(-1), { input: "blau\n" });
});

test("reply exits 1 when it is asked again, and says what was wrong", async () => {
  const task = await asked(INPUT);
  answering((of, { revision }) => [status(of, revision, INPUT, "expected a colour\nWhich colour?")]);
  const { code, stdout } = await sluice("reply", task, "seven");
  assert.equal(code, 1);
  assert.match(stdout, /^input required {2}expected a colour Which colour\?$/m);
  assert.match(stdout, new RegExp(`^peer must answer: ./sluice reply ${task} TEXT$`, "m"));
});

test("reply exits 1 when its answer was taken first and then found unfit, and only then", async () => {
  const then = (content: string, prompt?: string) => {
    answering((of, { revision }) => [
      status(of, revision, "TASK_STATE_WORKING", "input received"),
      status(of, revision + 1, INPUT, content),
    ]);
    return asked(INPUT, prompt);
  };
  const task = await then("answer: expected a colour\n\nWhich colour?");
  const unfit = await sluice("reply", task, "seven");
  assert.equal(unfit.code, 1);
  assert.match(
    unfit.stdout,
    /^working {4}input received\ninput required {2}answer: expected a colour Which colour\?$/m,
  );
  assert.match(unfit.stdout, new RegExp(`^peer must answer: ./sluice reply ${task} TEXT$`, "m"));
  // With another reason, when there was one already.
  answering((of, { revision }) => [
    status(of, revision, "TASK_STATE_WORKING", "input received"),
    status(of, revision + 1, INPUT, "answer: expected another\n\nWhich colour?"),
  ]);
  assert.equal((await sluice("reply", task, "eight")).code, 1);

  const further = await sluice("reply", await then("Which wall?"), "red");
  assert.equal(further.code, 0);
  assert.match(further.stdout, /^input required {2}Which wall\?$/m);
});

test("a second answer to one question is not sent, and that is said", async () => {
  const task = await asked(INPUT);
  stage.onControl = async () => {};
  assert.equal((await sluice("reply", task, "red", "--timeout", "0.2")).code, 124);
  const again = await sluice("reply", task, "blue", "--timeout", "0.2");
  assert.match(again.stderr, /an answer to this question was on its way already/);
  assert.match(again.stderr, new RegExp(`timed out: ${task} did not take the answer within 0.2 s`));
  assert.equal(again.code, 124);
});

test("authorize approves, and --deny denies", async () => {
  taking("authorization received");
  const approved = await sluice("authorize", await asked(AUTH, "Deploy 7?"));
  assert.equal(approved.code, 0);
  assert.match(approved.stdout, /^working {4}authorization received$/m);
  assert.deepEqual(sent(), ["auth_reply", "peer", "acme-gate", 3, { approve: true }]);

  const error = { code: "auth_not_satisfied", message: "not on a Friday" } as const;
  answering((task, { revision }) => [
    resultEvent(task, { revision, state: "TASK_STATE_FAILED", error, metrics: {} }, now()),
  ]);
  const denied = await sluice("authorize", await asked(AUTH), "--deny", "not on a Friday", "--json");
  assert.equal(denied.code, 0);
  assert.equal(denied.json().length, 1);
  assert.deepEqual(sent().at(-1), { approve: false, denyReason: "not on a Friday" });
  await sluice("authorize", await asked(AUTH), "--deny", "too", "dear");
  assert.deepEqual(sent().at(-1), { approve: false, denyReason: "too dear" });
  await sluice("authorize", await asked(AUTH), "--deny");
  assert.deepEqual(sent().at(-1), { approve: false });

  const lonely = await sluice("authorize", "task_1", "too", "dear");
  assert.deepEqual([lonely.code, lonely.stderr.includes("add --deny REASON")], [2, true]);

  // Approved, and denied all the same: somebody was faster.
  assert.equal((await sluice("authorize", await asked(AUTH))).code, 1);
});

test("of what only the operator may approve each verb advises the operator's command", async () => {
  const data = { by: "operator" };
  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(status(task, 2, AUTH, "Go?", data));
  };
  const { stdout } = await sluice("ask", "gate", "x", "--from", "peer", "--timeout", "5");
  const advice = /^the operator must decide: \.\/sluice approve (task_\w+), or add --deny REASON$/m;
  const task = advice.exec(stdout)?.[1] ?? "";
  assert.notEqual(task, "", stdout);
  for (const shown of [await sluice("status", task), await sluice("status", "--from", "peer")])
    assert.match(shown.stdout, advice);
  assert.match((await sluice("status", task, "--json")).stdout, /"by":"operator"/);
  answering((of, { revision }) => [
    status(of, revision, AUTH, "only the operator may approve this.\n\nGo?", data),
  ]);
  const tried = await sluice("authorize", task);
  assert.equal(tried.code, 1);
  assert.match(tried.stdout, advice);
  assert.doesNotMatch(tried.stdout + stdout, /authorize task_/);
});

test("what is not asked cannot be answered", async () => {
  const refused = async (args: string[], expected: RegExp) => {
    const { code, stderr } = await sluice(...args);
    assert.equal(code, 1);
    assert.match(stderr, expected);
  };
  const approval = await asked(AUTH);
  await refused(
    ["reply", approval, "x"],
    /peer must decide: .\/sluice authorize task_\w+, or add --deny REASON/,
  );
  await refused(["authorize", await asked(INPUT)], /peer must answer: .\/sluice reply task_\w+ TEXT/);
  await refused(["reply", "task_ffff", "x"], /nobody has accepted it yet/);
  await refused(["reply", approval, "x", "--from", "somebody"], /it is peer's task, not somebody's/);

  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    const working = task.from === "worker" ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED";
    const of = { revision: 2, state: working, metrics: {} } as const;
    await say(working === "TASK_STATE_WORKING" ? statusEvent(task, of, now()) : resultEvent(task, of, now()));
  };
  const send = async (from: string) => (await sluice("ask", "gate", "x", "--no-wait", "--from", from)).stdout;
  await refused(["reply", (await send("worker")).trim(), "x"], /asks nothing now: working/);
  const done = (await send("done")).trim();
  await refused(["authorize", done], /is over already: completed/);
  for (const args of [
    ["authorize", done],
    ["reply", done, "x"],
    ["cancel", done],
  ]) {
    const { code, json } = await sluice(...args, "--json");
    assert.deepEqual([code, json()], [1, [{ task: done, state: "TASK_STATE_COMPLETED" }]], args[0]);
  }
  assert.deepEqual(stage.controls, []);
});

test("an answer must be one, and what its option says", async () => {
  assert.equal(await readReply(["a", "b"], {}), "a b");
  for (const [words, given, expected] of [
    [[], {}, /expected one answer/],
    [["x"], { data: "1" }, /expected one answer/],
    [[], { data: "1", file: "f" }, /expected one answer/],
    [[], { data: "{" }, /--data: expected JSON/],
  ] as const)
    await assert.rejects(
      readReply(words, given),
      (error) => error instanceof CliError && error.exitCode === 2 && expected.test(error.message),
    );
  assert.equal((await sluice("reply", "task_1")).code, 2);

  const args = ["reply", await asked(INPUT), "--file", "-", "--nats", stage.nats.url];
  const { code, stderr } = await run(args, { cwd, stdin: "x".repeat(262_144) });
  assert.equal(code, 2);
  assert.match(stderr, /the message has \d+ bytes as encoded; its stream takes less/);
});

test("ask, status and watch say who must answer, and how", async () => {
  const watching = start(["watch", "--from", "asker", "--nats", stage.nats.url], { cwd });
  const jsm = await jetstreamManager(stage.nc);
  await until("watch", async () => (await jsm.streams.info("A2A_EVENTS")).state.consumer_count > 0);
  let task = "";
  stage.script = async (got, say) => {
    task = got.task.taskId;
    await asking(INPUT, "Which colour?\nAny will do.")(got, say);
  };
  taking("input received");
  const finish = stage.onControl;
  stage.onControl = async (control, say) => {
    await finish(control, say);
    const { taskId, from, to } = control;
    const messageId = stage.tasks.at(-1)?.task.messageId ?? "";
    const end = { revision: 4, state: "TASK_STATE_COMPLETED", metrics: {} } as const;
    await say(resultEvent({ taskId, messageId, from, to }, end, now()));
  };
  const running = start(["ask", "gate", "x", "--from", "asker", "--nats", stage.nats.url], { cwd });
  await until(
    "the question",
    async () => task !== "" && (await sluice("status", task)).stdout.includes("input"),
  );

  const wait = `asker must answer: ./sluice reply ${task} TEXT`;
  const one = await sluice("status", task);
  assert.match(one.stdout, new RegExp(`\nWhich colour\\?\nAny will do.\n\n${wait}\n$`));
  const all = await sluice("status", "--from", "asker");
  assert.match(all.stdout, new RegExp(`input required .* Which colour\\? Any will do.\n${wait}\n$`));

  assert.equal((await sluice("reply", task, "blue")).code, 0);
  const asked = await running.finished;
  assert.equal(asked.code, 0);
  assert.match(
    asked.stdout,
    new RegExp(`\ninput required\nWhich colour\\?\nAny will do.\n${wait}\nworking `),
  );
  watching.signal("SIGINT");
  assert.match((await watching.finished).stdout, new RegExp(`input required  Which colour.*\n +${wait}\n`));
});
