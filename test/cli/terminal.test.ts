import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  acceptedEvent,
  resultEvent,
  statusEvent,
  type TaskRef,
  type TaskState,
} from "../../shared/wire/index.ts";
import { until } from "../support/until.ts";
import { skip, onTerminal as startOn } from "./on-terminal.ts";
import { now, openStage, type Stage } from "./peer.ts";
import { run as sluice } from "./run.ts";

const CTRL_C = "\u0003";
let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  stage.script = async () => {};
  cwd = mkdtempSync(join(tmpdir(), "sluice-terminal-"));
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { digest: {} }\n");
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

/** `./sluice …` on a terminal, with the stage's NATS. */
const onTerminal = (args: string, nats = `--nats ${stage.nats.url}`) => startOn(`${args} ${nats}`, cwd);

// The spinner brings a signal handler of its own, which must not end the process before it has said goodbye.
test("Ctrl-C beside the spinner ends watch well and ask with 130", { skip }, async () => {
  for (const [args, waiting, exitCode, last] of [
    ["watch", "watching; Ctrl-C ends it", 0, /^/],
    [
      "ask digest x",
      "waiting for acme-digest",
      130,
      /\^C.*\r\n.*sluice: interrupted; nobody has taken the task yet, and it waits: \.\/sluice status task_\w+\r\n/,
    ],
  ] as const) {
    const run = onTerminal(args);
    await until(waiting, () => run.shown().includes(waiting), { seen: run.shown });
    run.type(CTRL_C);
    assert.equal(await run.exitCode(), exitCode, run.shown());
    assert.match(run.shown(), last);
    assert(run.shown().includes("\u001b[?25h"), "the cursor is back");
  }
});

/** An executor that asks these questions one after the other, each once the one before is answered. */
function asking(...questions: readonly { state: TaskState; prompt: string }[]): void {
  stage.controls.length = 0;
  const next = (task: TaskRef, revision: number, given = "") => {
    const question = questions[(revision - 2) / 2];
    return question === undefined
      ? resultEvent(task, { revision, state: "TASK_STATE_COMPLETED", content: given, metrics: {} }, now())
      : statusEvent(task, { revision, state: question.state, content: question.prompt }, now());
  };
  stage.script = async ({ task }, say) => {
    await say(acceptedEvent(task, now()));
    await say(next(task, 2));
  };
  stage.onControl = async ({ taskId, from, to, revision, a2a }, say) => {
    const task = { taskId, messageId: stage.tasks.at(-1)?.task.messageId ?? "", from, to };
    await say(statusEvent(task, { revision, state: "TASK_STATE_WORKING", content: "taken" }, now()));
    await say(next(task, revision + 1, JSON.stringify(a2a)));
  };
}

test("ask puts a task's questions to the person at the terminal", { skip }, async () => {
  asking(
    { state: "TASK_STATE_INPUT_REQUIRED", prompt: "Which colour?" },
    { state: "TASK_STATE_AUTH_REQUIRED", prompt: "Paint it?" },
  );
  const run = onTerminal("ask digest x");
  const shows = (text: string) => until(text, () => run.shown().includes(text), { seen: run.shown });
  await shows("answer: ");
  run.type("\r");
  run.type("dark blue\r");
  await shows("approve (yes or no): ");
  run.type("maybe\rn\r");
  await shows("expected yes or no");
  await shows("why not (may be empty): ");
  run.type("too dark\r");
  assert.equal(await run.exitCode(), 0, run.shown());
  assert.deepEqual(
    stage.controls.map(({ kind, from, revision, a2a }) => [kind, from, revision, a2a]),
    [
      ["input_reply", "acme-cli", 3, { input: "dark blue" }],
      ["auth_reply", "acme-cli", 5, { approve: false, denyReason: "too dark" }],
    ],
  );
});

test("a question that somebody else answers is taken back; one that nobody wants to answer is left", {
  skip,
}, async () => {
  asking({ state: "TASK_STATE_INPUT_REQUIRED", prompt: "Which colour?" });
  for (const key of ["", "\u0004"]) {
    const run = onTerminal("ask digest x");
    const shows = (text: string) => until(text, () => run.shown().includes(text), { seen: run.shown });
    await shows("answer: ");
    run.type(key);
    if (key !== "") await shows("acme-cli must answer: ./sluice reply task_");
    const task = stage.tasks.at(-1)?.task;
    assert(task !== undefined);
    const reply = await sluice(["reply", task.taskId, "blue", "--nats", stage.nats.url], { cwd });
    assert.equal(reply.code, 0, reply.stderr);
    assert.equal(await run.exitCode(), 0, run.shown());
    assert.match(run.shown(), /taken/);
  }
});

test("Ctrl-C ends ask while it puts a question", { skip }, async () => {
  asking({ state: "TASK_STATE_INPUT_REQUIRED", prompt: "Which colour?" });
  const run = onTerminal("ask digest x");
  await until("the question", () => run.shown().includes("answer: "), { seen: run.shown });
  run.type(CTRL_C);
  assert.equal(await run.exitCode(), 130, run.shown());
  assert.match(
    run.shown(),
    /sluice: interrupted; the task goes on: \.\/sluice status task_\w+, or \.\/sluice cancel task_\w+\r\n/,
  );
});

test("init asks for what it is not told, and again for what is no name", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-init-"));
  const terminal = onTerminal(`init ${folder} --agent greeter`, "");
  await until("it asks", () => terminal.shown().includes("Name of the deployment"));
  terminal.type("a b\n");
  await until("it asks again", () => terminal.shown().includes("expected 1 to 32"));
  terminal.type("acme\n");
  await until("it asks on", () => terminal.shown().includes("What it does"));
  terminal.type("\n");
  assert.equal(await terminal.exitCode(), 0, terminal.shown());
  assert.match(readFileSync(join(folder, "agents.yaml"), "utf8"), /^deployment: acme$/m);
  rmSync(folder, { recursive: true });
});
