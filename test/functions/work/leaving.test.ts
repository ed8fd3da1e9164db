import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../../shared/agents/index.ts";
import type { Publisher } from "../../../shared/events/publisher.ts";
import type { Store } from "../../../shared/tasks/store.ts";
import { controlMessage } from "../../../shared/wire/index.ts";
import { Probe } from "../../support/probe.ts";
import { until } from "../../support/until.ts";
import { SENDER } from "../../support/world.ts";

const MINUTE = 60_000;
const probe = new Probe();
/** Progress is told at the end of a run only. */
const quiet = new Probe({ statusEverySec: 3_600 });
const headOf = async (taskId: string, of = probe) => {
  const head = await of.world.store.head(taskId);
  assert.ok(head);
  return head;
};
const asking = async (step: Step) => `Hello ${await step.ask("name", "Your name?")}`;

describe("an answer that lands while its worker leaves", () => {
  for (const [when, at] of [
    ["just before the head is written", "before"],
    ["just after", "after"],
  ] as const)
    test(`is not lost: ${when}`, async () => {
      const hint = await probe.admit(asking);
      const { world } = probe;
      const suspend: Store["suspend"] = async (...args) => {
        if (at === "before") await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
        const held = await world.store.suspend(...args);
        if (at === "after") await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
        return held;
      };
      await world.work(hint, { store: { ...world.store, suspend } });
      assert.ok(world.hints.length >= 1);
      assert.ok(world.hints.every(({ delaySec }) => delaySec === 0));
      await probe.go();
      assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
    });

  test("is not lost: though the worker dies with the write", async () => {
    const hint = await probe.admit(asking, { delivery: { timeoutSec: 3_600 } });
    const { world } = probe;
    const died = new Error("no answer");
    const suspend: Store["suspend"] = async (...args) => {
      await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
      await world.store.suspend(...args);
      throw died;
    };
    await assert.rejects(world.work(hint, { store: { ...world.store, suspend } }), died);
    await probe.pass(5 * MINUTE);
    assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
  });

  test("is not lost: at the place of the last progress text", async () => {
    const hint = await quiet.admit(async (step) => {
      const asked = asking(step);
      await step.run("work", () => 1);
      step.status("waiting for you");
      return await asked;
    });
    const { world } = quiet;
    const append: Store["append"] = async (...args) => {
      const { opens, steps, events = [] } = args[1];
      if (opens === undefined && steps === undefined && events.some(({ kind }) => kind === "status"))
        await quiet.reply(hint.taskId, "input_reply", { input: "Ada" });
      return world.store.append(...args);
    };
    await world.work(hint, { store: { ...world.store, append } });
    assert.equal((await headOf(hint.taskId, quiet)).waiting, true);
    await quiet.go();
    assert.equal((await quiet.last(hint.taskId))?.content, "Hello Ada");
    const told = await quiet.told(hint.taskId);
    assert.ok(told.includes("WORKING waiting for you"), `${told}`);
  });

  test("is found by the sweep when the hint cannot be sent", async () => {
    const hint = await probe.admit(asking);
    const { world } = probe;
    const suspend: Store["suspend"] = async (...args) => {
      await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
      return world.store.suspend(...args);
    };
    const noQueue = new Error("no queue");
    const options = { store: { ...world.store, suspend }, hint: () => Promise.reject(noQueue) };
    await assert.rejects(world.work(hint, options), noQueue);
    world.hints.splice(0);
    await world.sweep();
    await probe.go();
    assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
  });
});

describe("what a worker reads while it leaves", () => {
  /** Tells the worker of news. It may have stopped listening by then: whoever was told before still reads. */
  let tell = () => {};
  const listen = async (_taskId: string, told: () => void) => {
    tell = told;
    return () => {};
  };
  /** The store, with how often the journal was read. */
  const watched = (store: Store) => {
    const read = { times: 0 };
    const entries: Store["entries"] = async (...args) => {
      const found = await store.entries(...args);
      read.times++;
      return found;
    };
    return { store: { ...store, entries }, read };
  };

  test("is the end, though whoever has put that dies", async () => {
    const halted = Promise.withResolvers<void>();
    const { taskId, ...hint } = await probe.admit((step) => {
      step.signal.addEventListener("abort", () => halted.resolve());
      return asking(step);
    });
    const { world } = probe;
    const { store, read } = watched(world.store);
    const died = new Error("no answer");
    const publish: Publisher["publish"] = async (...args) => {
      if (args[1].revision === 2) {
        // From then on the worker has nothing more to put, and waits until its question is published.
        await halted.promise;
        const control = cancel(taskId, { ...world.publisher, lastRevision: () => Promise.reject(died) });
        await assert.rejects(control, died);
        tell();
        await until("the worker has read", () => read.times > 0);
      }
      await world.publisher.publish(...args);
    };
    await world.work({ taskId, ...hint }, { store, publisher: { ...world.publisher, publish }, listen });
    const { state, dueAt, waiting } = await headOf(taskId);
    assert.deepEqual([state, dueAt, waiting], ["TASK_STATE_CANCELED", undefined, undefined]);
    assert.equal((await probe.last(taskId))?.state, "TASK_STATE_CANCELED");
  });

  test("is gone on with at once, though it is read before the head says that there is news", async () => {
    const hint = await probe.admit(asking);
    const { world } = probe;
    const { store, read } = watched(world.store);
    const suspend: Store["suspend"] = async (...args) => {
      if (read.times === 0) {
        await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
        tell();
        await until("the worker has read", () => read.times > 0);
      }
      return world.store.suspend(...args);
    };
    await world.work(hint, { store: { ...store, suspend }, listen });
    assert.equal((await headOf(hint.taskId)).waiting, true);
    await probe.go();
    assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
  });

  function cancel(taskId: string, publisher: Publisher) {
    const { world } = probe;
    const to = world.deployment.agents[0]?.runtime ?? "";
    const createdAt = new Date(world.now()).toISOString();
    const message = controlMessage({ from: SENDER, to, taskId, kind: "cancel", revision: 2, createdAt });
    return world.control(message, { publisher });
  }
});

test("each claim logs a line of the task before its handler runs, by which a death is known as the task's", async () => {
  let logged: unknown[] = [];
  const hint = await probe.admit(async (step) => {
    logged = probe.world.log.filter(({ fields }) => fields?.taskId === hint.taskId);
    return step.run("work", () => "done");
  });
  await probe.world.work(hint);
  const { taskId } = hint;
  assert.deepEqual(logged.at(-1), {
    level: "info",
    message: "a task is taken up",
    fields: { taskId, to: (await headOf(taskId)).to, epoch: 1 },
  });
});
