import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { ApprovalDenied, defineAgent, FatalError, skill } from "../../shared/agents/index.ts";
import { type ControlKind, controlMessage } from "../../shared/wire/index.ts";
import { strictly } from "../support/strict.ts";
import { SENDER, startWorld, type World } from "../support/world.ts";

const TO = "acme-support";
const HOUR = 3_600_000;

const support = defineAgent({
  id: "support",
  description: "Does what the text says",
  skills: {
    task: skill({
      name: "Task",
      description: "A task",
      input: z.enum([
        "go",
        "fail",
        "fatal",
        "hang",
        "ask",
        "approve",
        "lenient",
        "two",
        "number",
        "sleep",
        "late",
      ]),
      run: async ({ input }, step) => {
        switch (input) {
          case "go":
            return "done";
          case "fail":
            return await step.run("work", () => Promise.reject(new Error("no luck")), { retry: false });
          case "fatal":
            throw new FatalError("no hope");
          case "hang":
            return await new Promise<string>(() => {});
          case "ask":
            return `painted ${await step.ask("colour", "Which colour?")}`;
          case "approve":
            await step.approve("go", "Deploy 7?");
            return "deployed";
          case "lenient": {
            const caught = (error: unknown) => {
              if (error instanceof ApprovalDenied) return error.message;
              throw error;
            };
            const why = await step.approve("go", "Deploy 7?").then(() => "approved", caught);
            return `went on: ${why}`;
          }
          case "two": {
            const one = await step.ask("one", "First?");
            return `${one}, ${await step.ask("two", "Second?")}`;
          }
          case "number":
            return `${await step.ask("n", "How many?", { schema: z.object({ n: z.int() }) })}`;
          case "sleep":
            await step.sleep("night", "10m");
            return "awake";
          case "late":
            return `painted ${await step.ask("colour", "Which colour?", { timeout: "1h" })}`;
        }
      },
    }),
  },
});

let world: World;
before(async () => {
  world = await startWorld([support]);
});
after(() => world.stop());

/** Takes the hints that there are, and those that come of them, each when its delay is over. */
async function go(): Promise<void> {
  for (let taken = world.hints.shift(); taken !== undefined; taken = world.hints.shift()) {
    world.skip(taken.delaySec * 1_000);
    await world.work(taken.hint);
  }
}

type Task = ReturnType<World["task"]>;

/** A task that was worked on until it ended or began to wait. */
async function started(a2a: string, delivery: { timeoutSec?: number } = {}): Promise<Task> {
  const task = world.task({ a2a, delivery });
  assert.deepEqual(await world.admit(task), ACK);
  await go();
  return task;
}

interface Sent {
  readonly a2a?: unknown;
  readonly reason?: string;
  readonly messageId?: string;
  readonly from?: string;
}

/** Sends a control, and lets whoever it wakes work. */
async function send({ taskId }: Task, kind: ControlKind, revision: number, of: Sent = {}) {
  const createdAt = new Date(world.now()).toISOString();
  const message = controlMessage({ from: SENDER, to: TO, taskId, kind, revision, ...of, createdAt });
  const verdict = await world.control(message);
  await go();
  return verdict;
}

const seen = (task: Task) => strictly(world.peer, task);
const ACK = { ack: true };
const reply = (input: unknown): Sent => ({ a2a: { input } });

describe("the flows that peers know, with exactly these states and revisions", () => {
  test("happy path", async () => {
    assert.deepEqual(await seen(await started("go")), ["1 accepted WORKING", "2 result COMPLETED done"]);
  });

  test("failure", async () => {
    for (const [input, message] of [
      ["fail", "Error: no luck"],
      ["fatal", "FatalError: no hope"],
    ] as const) {
      const events = await seen(await started(input));
      assert.deepEqual(events, ["1 accepted WORKING", `2 result FAILED internal: ${message}`]);
    }
  });

  test("timeout", async () => {
    assert.deepEqual(await seen(await started("hang", { timeoutSec: 1 })), [
      "1 accepted WORKING",
      "2 result FAILED timeout: the task was not done within 1 s",
    ]);
  });

  test("input required", async () => {
    const task = await started("ask");
    const asked = ["1 accepted WORKING", "2 status INPUT_REQUIRED Which colour?"];
    assert.deepEqual(await seen(task), asked);
    assert.deepEqual(await send(task, "input_reply", 3, reply("blue")), ACK);
    const over = [...asked, "3 status WORKING input received", "4 result COMPLETED painted blue"];
    assert.deepEqual(await seen(task), over);
  });

  test("authorization required, and given", async () => {
    const task = await started("approve");
    assert.deepEqual(await send(task, "auth_reply", 3, { a2a: { approve: true } }), ACK);
    assert.deepEqual(await seen(task), [
      "1 accepted WORKING",
      "2 status AUTH_REQUIRED Deploy 7?",
      "3 status WORKING authorization received",
      "4 result COMPLETED deployed",
    ]);
  });

  test("authorization required, and denied", async () => {
    const task = await started("approve");
    const denial = { a2a: { approve: false, denyReason: "not on a Friday" } };
    assert.deepEqual(await send(task, "auth_reply", 3, denial), ACK);
    assert.deepEqual(await seen(task), [
      "1 accepted WORKING",
      "2 status AUTH_REQUIRED Deploy 7?",
      "3 result FAILED auth_not_satisfied: not on a Friday",
    ]);
  });

  test("cancel while it waits", async () => {
    for (const [input, question] of [
      ["ask", ["2 status INPUT_REQUIRED Which colour?"]],
      ["approve", ["2 status AUTH_REQUIRED Deploy 7?"]],
      ["sleep", []],
    ] as const) {
      const task = await started(input, { timeoutSec: 3_000 });
      const next = question.length + 2;
      assert.deepEqual(await send(task, "cancel", next, { reason: "enough" }), ACK);
      const canceled = `${next} status CANCELED canceled: enough`;
      assert.deepEqual(await seen(task), ["1 accepted WORKING", ...question, canceled]);
      // Nothing wakes it any more.
      world.skip(HOUR);
      await world.sweep();
      assert.deepEqual(world.hints.splice(0), []);
      assert.equal((await seen(task)).length, next);
    }
  });
});

describe("what differs from other executors on purpose", () => {
  test("status while it waits tells the state and what is asked, and changes neither", async () => {
    const task = await started("ask");
    assert.deepEqual(await send(task, "status", 3), ACK);
    assert.deepEqual(await send(task, "status", 3), ACK);
    assert.deepEqual(await send(task, "status", 4), ACK);
    await send(task, "input_reply", 5, reply("blue"));
    assert.deepEqual(await seen(task), [
      "1 accepted WORKING",
      "2 status INPUT_REQUIRED Which colour?",
      "3 status INPUT_REQUIRED Which colour?",
      "4 status INPUT_REQUIRED Which colour?",
      "5 status WORKING input received",
      "6 result COMPLETED painted blue",
    ]);
  });

  test("approval must be explicit", async () => {
    const task = await started("approve");
    assert.deepEqual(await send(task, "auth_reply", 3), ACK);
    assert.deepEqual(await send(task, "auth_reply", 4, { a2a: { approve: "true" } }), ACK);
    assert.deepEqual(await send(task, "auth_reply", 5, { a2a: { approve: true } }), ACK);
    const again = "AUTH_REQUIRED expected approve to be true or false\n\nDeploy 7?";
    assert.deepEqual(await seen(task), [
      "1 accepted WORKING",
      "2 status AUTH_REQUIRED Deploy 7?",
      `3 status ${again}`,
      `4 status ${again}`,
      "5 status WORKING authorization received",
      "6 result COMPLETED deployed",
    ]);
  });

  test("an answer that does not parse is met by the question again, with the reason", async () => {
    const task = await started("number");
    await send(task, "input_reply", 3, reply({ n: "many" }));
    await send(task, "status", 5);
    await send(task, "input_reply", 6, reply({ n: 7 }));
    const events = await seen(task);
    assert.match(events[3] ?? "", /^4 status INPUT_REQUIRED That answer does not fit: n: .*\n\nHow many\?$/);
    assert.deepEqual(events.toSpliced(3, 1), [
      "1 accepted WORKING",
      "2 status INPUT_REQUIRED How many?",
      "3 status WORKING input received",
      "5 status INPUT_REQUIRED How many?",
      "6 status WORKING input received",
      "7 result COMPLETED [object Object]",
    ]);
  });

  test("a denial that the agent catches goes on without an event of its own", async () => {
    const task = await started("lenient");
    await send(task, "auth_reply", 3, { a2a: { approve: false, denyReason: "no" } });
    assert.equal((await seen(task)).at(-1), "3 result COMPLETED went on: no");
  });

  test("a question that nobody answers in time ends the task, and a late answer gets its end again", async () => {
    const task = await started("late");
    world.skip(HOUR);
    await world.sweep();
    await go();
    const events = await seen(task);
    assert.match(events.at(-1) ?? "", /^3 result FAILED timeout: /);
    assert.deepEqual(await send(task, "input_reply", 4, reply("blue")), ACK);
    const repeated = await world.peer.events(task.taskId);
    assert.equal(repeated.length, 4);
    assert.deepEqual(repeated[3]?.body, repeated[2]?.body);
  });

  test("what a person takes is not the task's time", async () => {
    const task = await started("ask", { timeoutSec: 60 });
    world.skip(48 * HOUR);
    await world.sweep();
    await go();
    assert.deepEqual(await send(task, "input_reply", 3, reply("blue")), ACK);
    assert.equal((await seen(task)).at(-1), "4 result COMPLETED painted blue");
  });
});

describe("what must change nothing", () => {
  /** Sends a control that must not be seen: neither now nor in the outcome. */
  async function unseen(task: Task, act: () => Promise<unknown>): Promise<unknown> {
    const before = [await seen(task), await world.store.entries(task.taskId, 1)];
    const verdict = await act();
    assert.deepEqual([await seen(task), await world.store.entries(task.taskId, 1)], before);
    return verdict;
  }

  test("copies of an earlier answer, and answers to closed questions, while the next question is open", async () => {
    const task = await started("two");
    await send(task, "input_reply", 3, reply("a"));
    assert.equal((await seen(task)).at(-1), "4 status INPUT_REQUIRED Second?");
    const redelivered = () => send(task, "input_reply", 3, reply("a"));
    assert.deepEqual(await unseen(task, redelivered), ACK);
    const copied = () => send(task, "input_reply", 3, { ...reply("a"), messageId: "copy" });
    assert.deepEqual(await unseen(task, copied), ACK);
    const early = () => send(task, "input_reply", 4, { ...reply("a"), messageId: "early" });
    assert.deepEqual(await unseen(task, early), ACK);
    const wrong = () => send(task, "auth_reply", 5, { a2a: { approve: true } });
    assert.ok("term" in z.looseObject({}).parse(await unseen(task, wrong)));
    await send(task, "input_reply", 5, reply("b"));
    assert.equal((await seen(task)).at(-1), "6 result COMPLETED a, b");
  });

  test("replies to a task that asks nothing", async () => {
    const task = await started("sleep", { timeoutSec: 3_000 });
    const nothing = { term: "no question is open" };
    assert.deepEqual(await unseen(task, () => send(task, "input_reply", 2, reply("a"))), nothing);
    const approved = () => send(task, "auth_reply", 2, { a2a: { approve: true } });
    assert.deepEqual(await unseen(task, approved), nothing);
  });

  test("controls from somebody else", async () => {
    const task = await started("approve");
    for (const kind of ["auth_reply", "input_reply", "cancel", "status"] as const) {
      const forged = { from: "eve-room", a2a: { approve: true } };
      const verdict = await unseen(task, () => send(task, kind, 3, forged));
      assert.deepEqual(verdict, { term: "control ownership mismatch" });
    }
  });

  test("absurd revisions do not move the numbering", async () => {
    const task = await started("two");
    const { subject, body } = controlMessage({
      from: SENDER,
      to: TO,
      taskId: task.taskId,
      kind: "input_reply",
      revision: 3,
      messageId: "absurd",
      a2a: { input: "a" },
      createdAt: new Date(world.now()).toISOString(),
    });
    for (const revision of [0, -1, 2 ** 53, 1.5]) {
      const absurd = body.replaceAll('"revision":3', `"revision":${revision}`);
      await unseen(task, () => world.control({ subject, body: absurd }));
    }
    assert.deepEqual(await send(task, "input_reply", Number.MAX_SAFE_INTEGER, reply("a")), ACK);
    await send(task, "input_reply", 5, reply("b"));
    assert.deepEqual((await seen(task)).slice(2), [
      "3 status WORKING input received",
      "4 status INPUT_REQUIRED Second?",
      "5 status WORKING input received",
      "6 result COMPLETED a, b",
    ]);
  });

  test("a reply that overtakes its task is given back, and counts when it comes again only if it saw the question", async () => {
    const task = world.task({ a2a: "ask" });
    assert.ok("nakMs" in (await send(task, "input_reply", 1, reply("blind"))));
    await world.admit(task);
    await go();
    assert.deepEqual(await unseen(task, () => send(task, "input_reply", 1, reply("blind"))), ACK);
    await send(task, "input_reply", 3, reply("blue"));
    assert.equal((await seen(task)).at(-1), "4 result COMPLETED painted blue");
  });

  test("a cancel that overtakes its task ends it once it is there", async () => {
    const task = world.task({ a2a: "ask" });
    assert.ok("nakMs" in (await send(task, "cancel", 1)));
    await world.admit(task);
    assert.deepEqual(await send(task, "cancel", 1), ACK);
    await go();
    assert.deepEqual(await seen(task), [
      "1 accepted WORKING",
      "2 status CANCELED canceled: cancel requested",
    ]);
  });
});

test("a reply reaches a worker that has not left yet, and it goes on in the same run", async () => {
  const task = world.task({ a2a: "ask" });
  await world.admit(task);
  const [first] = world.hints.splice(0);
  assert.ok(first);
  // While the worker leaves: its head does not say yet that it waits.
  const { suspend } = world.store;
  let left = 0;
  const store: World["store"] = {
    ...world.store,
    suspend: (...args) => {
      left++;
      return suspend(...args);
    },
  };
  const asked = world.work(first.hint, { store });
  for (let events: string[] = []; events.length < 2; ) events = await seen(task);
  const createdAt = new Date(world.now()).toISOString();
  const of = { from: SENDER, to: TO, taskId: task.taskId, kind: "input_reply", revision: 3 } as const;
  await world.control(controlMessage({ ...of, ...reply("blue"), createdAt }));
  await asked;
  await go();
  assert.ok(left <= 1);
  assert.equal((await seen(task)).at(-1), "4 result COMPLETED painted blue");
});
