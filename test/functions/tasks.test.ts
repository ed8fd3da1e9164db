import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import type { Entry } from "../../shared/tasks/items.ts";
import { controlMessage, isTerminal } from "../../shared/wire/index.ts";
import { assertForm, loadEventForms, loadTaskCases } from "../support/fixtures.ts";
import { SENDER, startWorld, type World } from "../support/world.ts";

/** What the handlers of this file did, by task. */
const ran = new Map<string, string[]>();
const did = (task: string, what: string) => ran.set(task, [...(ran.get(task) ?? []), what]);
/** Lets a test hold a handler in its middle. */
let hold: () => Promise<void> = async () => {};

const support = defineAgent({
  id: "support",
  description: "Does what the text says",
  skills: {
    task: skill({
      name: "Task",
      description: "A task",
      input: z.string(),
      run: async (task, step) => {
        if (task.input === "throw") throw new Error("no luck");
        if (task.input === "bigint") return { data: { n: 1n } };
        if (task.input === "hang") return await new Promise<string>(() => {});
        if (task.input === "flood") for (let n = 0; n < 10_000; n++) step.status(`at ${n}`);
        if (task.input === "long") return "\u0000".repeat(3 * 1024 * 1024);
        const read = await step.run("read", () => {
          did(task.id, "read");
          return { at: new Date(0) };
        });
        assert.equal(typeof read.at, "string"); // what JSON makes of it, the first time as well
        step.status("reading");
        await hold();
        await step.run("write", () => void did(task.id, "write"));
        await step.artifact("report", { text: "hello\n", filename: "report.txt" });
        return "done";
      },
    }),
  },
});

describe("a task over real parts", () => {
  let world: World;
  before(async () => {
    world = await startWorld([support]);
  });
  after(() => world.stop());

  test("its events have the forms of the fixtures, and revisions without a gap", async () => {
    const taskId = await world.run();
    const events = await world.peer.events(taskId);
    const { events: forms, task } = loadEventForms();
    assert.deepEqual(
      events.map(({ event }) => `${event.revision} ${event.kind}`),
      ["1 accepted", "2 status", "3 artifact", "4 result"],
    );
    for (const [index, { body, msgId }] of events.entries()) {
      const text = JSON.stringify(body)
        .replaceAll(taskId, "task_8463c7c504e9c3d38998774d")
        .replaceAll(events[0]?.event.messageId ?? "", task.messageId);
      assertForm(JSON.parse(text), forms[index]?.body);
      assert.ok(msgId.includes(taskId));
    }
    const head = await world.store.head(taskId);
    assert.equal(head?.state, "TASK_STATE_COMPLETED");
    assert.equal(head?.published, 4);
    assert.equal(head?.dueAt, undefined);
  });

  test("a repeated message is answered again and runs nothing", async () => {
    const message = world.task();
    await world.admit(message);
    await world.admit(message);
    await world.admit({ ...message, body: message.body.replace("hello", "other") });
    const hints = world.hints.splice(0);
    assert.ok(hints.length >= 2);
    await Promise.all(hints.map(({ hint }) => world.work(hint)));
    assert.deepEqual(ran.get(message.taskId), ["read", "write"]);
    const before = await world.peer.events(message.taskId);
    await world.admit(message);
    assert.deepEqual(await world.peer.events(message.taskId), before);
    assert.equal(world.hints.length, 0);
  });

  test("a hint at a task of an agent that another function works for is handed on as it is", async () => {
    const message = world.task();
    await world.admit(message);
    const [admitted] = world.hints.splice(0);
    assert.ok(admitted);
    assert.equal(admitted.hint.to, world.deployment.agents[0]?.runtime);
    await world.work(admitted.hint, { agents: [] });
    assert.deepEqual(world.hints, [{ hint: admitted.hint, delaySec: 0 }]);
    assert.equal((await world.store.head(message.taskId))?.epoch, 0);
    for (let taken = world.hints.shift(); taken !== undefined; taken = world.hints.shift())
      await world.work(taken.hint);
  });

  for (const { name, subject, bytes, expect, direct } of loadTaskCases(Date.now()).filter((of) => of.direct))
    test(`a message that no standard server takes is decided as the fixtures say: ${name}`, async () => {
      assert.ok(direct);
      const verdict = await world.admit({ subject, body: bytes });
      if (expect.ack === "term") return void assert.ok("term" in verdict);
      assert.deepEqual(verdict, { ack: true });
      for (let taken = world.hints.shift(); taken !== undefined; taken = world.hints.shift())
        await world.work(taken.hint);
      assert.equal((await world.peer.events(expect.taskId))[0]?.event.kind, "accepted");
    });

  for (const [input, code] of [
    ["throw", "internal"],
    ["bigint", "internal"],
  ] as const)
    test(`a handler that does not come to a result (${input}) ends as ${code}`, async () => {
      const taskId = await world.run({ a2a: input });
      const last = (await world.peer.events(taskId)).at(-1);
      assert.equal(last?.event.state, "TASK_STATE_FAILED");
      assert.equal(last?.event.error?.code, code);
    });

  test("the deadline ends a handler that hangs", async () => {
    const taskId = await world.run({ a2a: "hang", delivery: { timeoutSec: 1 } });
    const last = (await world.peer.events(taskId)).at(-1);
    assert.equal(last?.event.error?.code, "timeout");
  });

  test("a flood of status texts is merged, and its last is kept", async () => {
    const taskId = await world.run({ a2a: "flood" });
    const events = await world.peer.events(taskId);
    assert.ok(events.length < 20, `${events.length} events`);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  });

  test("a text that must be escaped throughout is cut to an event's size and kept whole", async () => {
    const taskId = await world.run({ a2a: "long" });
    const events = await world.peer.events(taskId);
    const result = events.at(-1);
    assert.ok((result?.bytes ?? 0) <= 1_000_000 && (result?.bytes ?? 0) > 990_000, `${result?.bytes} bytes`);
    const artifact = events.find(({ event }) => event.kind === "artifact")?.event.artifact;
    assert.equal(artifact?.sizeBytes, 3 * 1024 * 1024);
  });

  test("a worker that takes over keeps what is stored, and the one that lost the claim changes nothing", async () => {
    const message = world.task();
    await world.admit(message);
    const [first] = world.hints.splice(0);
    const held = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    hold = async () => {
      reached.resolve();
      await held.promise;
    };
    assert.ok(first);
    // A process that is stopped shows no life.
    const zombie = world.work(first.hint, { clock: { now: world.now, timer: () => () => {} } });
    await reached.promise;
    hold = async () => {};
    world.skip(world.timing.leaseMs);
    await world.sweep();
    const [offered] = world.hints.splice(0);
    assert.deepEqual(offered?.hint, { taskId: message.taskId, epoch: 1, beat: 0, to: "acme-support" });
    assert.ok((offered?.delaySec ?? 0) >= 60);
    assert.ok(offered);
    await world.work(offered.hint);
    held.resolve();
    await zombie;
    assert.equal(ran.get(message.taskId)?.filter((what) => what === "read").length, 1);
    const revisions = (await world.peer.events(message.taskId)).map(({ event }) => event.revision);
    assert.deepEqual(
      revisions,
      revisions.map((_, index) => index + 1),
    );
    assert.equal(
      (await world.peer.events(message.taskId)).filter(({ event }) => isTerminal(event.state)).length,
      1,
    );
  });

  test("a cancel between two steps ends the task once", async () => {
    const message = world.task();
    await world.admit(message);
    const [first] = world.hints.splice(0);
    assert.ok(first);
    let verdict: unknown;
    hold = async () => {
      verdict = await world.cancel(message.taskId);
    };
    await world.work(first.hint);
    hold = async () => {};
    assert.deepEqual(verdict, { ack: true });
    const events = await world.peer.events(message.taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_CANCELED");
    assert.equal(events.at(-1)?.event.error?.message, "changed my mind");
    assert.equal(events.filter(({ event }) => isTerminal(event.state)).length, 1);
    // Its own redelivery brings nothing new; another control gets the last event again.
    await world.cancel(message.taskId);
    assert.equal((await world.peer.events(message.taskId)).length, events.length);
    await world.cancel(message.taskId, 9);
    const again = await world.peer.events(message.taskId);
    assert.deepEqual(again.at(-1)?.body, events.at(-1)?.body);
    assert.equal(again.length, events.length + 1);
  });

  test("controls that share a message id are told apart, and a reason that is cut in a pair still cancels", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    const say = (kind: "status" | "cancel", revision: number, reason?: string) =>
      world.control(
        controlMessage({
          from: SENDER,
          to: "acme-support",
          taskId: message.taskId,
          kind,
          revision,
          messageId: "always-the-same",
          ...(reason === undefined ? {} : { reason }),
          createdAt: new Date(world.now()).toISOString(),
        }),
      );
    assert.deepEqual(await say("status", 2), { ack: true });
    assert.deepEqual(await say("status", 2), { ack: true });
    assert.deepEqual(await say("cancel", 3, `${"x".repeat(1_999)}😀`), { ack: true });
    const events = (await world.peer.events(message.taskId)).map(
      ({ event }) => `${event.revision} ${event.state}`,
    );
    assert.deepEqual(events, ["1 TASK_STATE_WORKING", "2 TASK_STATE_WORKING", "3 TASK_STATE_CANCELED"]);
  });

  test("five claims in a row that store nothing end the task, naming the step", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    hold = async () => {
      throw Object.assign(new Error("the worker dies"), { name: "Death" });
    };
    // A worker that dies leaves a raised epoch and nothing else.
    let epoch = 0;
    for (; epoch < 5; epoch++) {
      const claimed = await world.store.claim(
        { taskId: message.taskId, epoch, beat: 0 },
        `dead-${epoch}`,
        world.now(),
      );
      assert.ok(claimed);
      if (epoch > 0)
        await world.store.append(
          message.taskId,
          {
            place: epoch,
            nonce: `dead-${epoch}`,
            epoch: epoch + 1,
            at: world.now(),
            revision: 1,
            claim: true,
          },
          claimed.expiresAt,
        );
    }
    await world.store.beat(message.taskId, epoch, { beat: 7, running: "read" });
    await world.work({ taskId: message.taskId, epoch, beat: 7 });
    hold = async () => {};
    const last = (await world.peer.events(message.taskId)).at(-1);
    assert.equal(last?.event.error?.code, "internal");
    assert.match(last?.event.error?.message ?? "", /5 times.*"read"/);
  });

  /** A worker that claims, puts a claim's entry and these, and dies. */
  const dies = async (taskId: string, epoch: number, ...more: Partial<Entry>[]) => {
    const head = await world.store.head(taskId);
    const claimed = await world.store.claim(
      { taskId, epoch, beat: head?.beat ?? 0 },
      `dead-${epoch}`,
      world.now(),
    );
    assert.ok(claimed);
    const entries: Partial<Entry>[] = epoch === 0 ? more : [{ claim: true }, ...more];
    for (const part of entries) {
      const last = await world.store.last(taskId);
      const entry = {
        place: (last?.place ?? 0) + 1,
        nonce: randomUUID(),
        epoch: epoch + 1,
        at: world.now(),
        revision: last?.revision ?? 1,
        ...part,
      };
      await world.store.append(taskId, entry, claimed.expiresAt);
    }
  };
  const progress = { control: { revision: 2, kind: "status", messageId: "msg_1" } };

  test("progress texts and answered controls do not save a handler that kills its workers", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    for (let epoch = 0; epoch < 5; epoch++) await dies(message.taskId, epoch, progress);
    await world.work({ taskId: message.taskId, epoch: 5, beat: 0 });
    const last = (await world.peer.events(message.taskId)).at(-1);
    assert.match(last?.event.error?.message ?? "", /died 5 times in a row before its first step/);
  });

  test("a worker that dies between steps is told to have died after the last one", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    const read = { name: "read", kind: "run" as const, value: { text: '{"at":""}' }, ms: 1 };
    await dies(message.taskId, 0, { steps: [read] });
    await world.store.beat(message.taskId, 1, { beat: 1, running: "read" });
    for (let epoch = 1; epoch <= 5; epoch++) await dies(message.taskId, epoch);
    await world.work({ taskId: message.taskId, epoch: 6, beat: 1 });
    const last = (await world.peer.events(message.taskId)).at(-1);
    assert.match(last?.event.error?.message ?? "", /died 5 times in a row after step "read"/);
  });

  test("a step whose name cannot be noted is run all the same", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    await dies(message.taskId, 0);
    const store: World["store"] = { ...world.store, beat: () => Promise.reject(new Error("no table")) };
    await world.work({ taskId: message.taskId, epoch: 1, beat: 0 }, { store });
    const last = (await world.peer.events(message.taskId)).at(-1);
    assert.equal(last?.event.state, "TASK_STATE_COMPLETED");
  });

  test("an event that has landed unanswered is not sent again, however late the stream is reached again", async () => {
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    let unanswered = 0;
    const publisher: World["publisher"] = {
      ...world.publisher,
      async publish(task, event) {
        const first = event.kind === "result" && unanswered++ === 0;
        // Under an id of its own, as if the stream had forgotten that it holds the event.
        await world.publisher.publish(task, event, first ? "forgotten" : undefined);
        if (first) throw new Error("no answer");
      },
    };
    await world.work({ taskId: message.taskId, epoch: 0, beat: 0 }, { publisher });
    const events = await world.peer.events(message.taskId);
    assert.deepEqual(
      events.map(({ event }) => event.revision),
      events.map((_, index) => index + 1),
    );
    assert.equal((await world.store.head(message.taskId))?.dueAt, undefined);
  });
});
