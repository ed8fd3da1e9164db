import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Step } from "../../../shared/agents/index.ts";
import type { Store } from "../../../shared/tasks/store.ts";
import { Probe } from "../../support/probe.ts";
import { until } from "../../support/until.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const probe = new Probe();
const headOf = async (taskId: string, of = probe) => {
  const head = await of.world.store.head(taskId);
  assert.ok(head);
  return head;
};

/** Of an agent without a limit. */
const free = new Probe({ maxConcurrent: 0 });

/** The store, with every request counted. */
function counted(store: Store): { store: Store; requests: string[] } {
  const requests: string[] = [];
  const proxy = new Proxy(store, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== "function") return method;
      return (...args: unknown[]): unknown => {
        requests.push(String(key));
        return Reflect.apply(method, target, args);
      };
    },
  });
  return { store: proxy, requests };
}

describe("what a task costs", () => {
  test("one step and no progress: four requests after the admission", async () => {
    const hint = await free.admit((step) => step.run("one", () => 1));
    const { store, requests } = counted(free.world.store);
    await free.world.work(hint, { store });
    assert.deepEqual(requests, ["claim", "append", "append", "settle"]);
  });

  test("where the agent has a limit: a read of the head more", async () => {
    const hint = await probe.admit((step) => step.run("one", () => 1));
    const { store, requests } = counted(probe.world.store);
    await probe.world.work(hint, { store });
    assert.deepEqual(requests, ["head", "claimSlot", "append", "append", "settle"]);
  });

  test("a step is one put, however many were before, and so is a wait", async () => {
    const hint = await free.admit(async (step) => {
      for (let n = 0; n < 200; n++) await step.run("work", () => n);
      await step.sleep("short", 1);
      return "done";
    });
    const { store, requests } = counted(free.world.store);
    await free.world.work(hint, { store });
    assert.deepEqual(requests, ["claim", ...Array.from({ length: 202 }, () => "append"), "settle"]);
  });

  test("leaving a task that waits: an update; taking it up again: a claim, a read and an entry", async () => {
    const hint = await free.admit(async (step) => {
      await step.sleep("minute", "1m");
      return "done";
    });
    const { store, requests } = counted(free.world.store);
    await free.world.work(hint, { store });
    assert.deepEqual(requests.splice(0), ["claim", "append", "suspend"]);
    await free.go({ store });
    assert.deepEqual(requests, ["claim", "entries", "append", "append", "settle"]);
  });
});

describe("a task that waits", () => {
  test("shows so in its head, is due when it is to go on, and is claimed by whoever comes then", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?", { timeout: "2h" }));
    const left = await headOf(taskId);
    const { waiting, calm, epoch, beat, state, published, dueAt = 0 } = left;
    assert.deepEqual(
      { waiting, calm, epoch, state, published },
      { waiting: true, calm: 1, epoch: 1, state: "TASK_STATE_INPUT_REQUIRED", published: 2 },
    );
    assert.ok(Math.abs(dueAt - probe.world.now() - 2 * HOUR) < MINUTE);
    assert.equal(probe.world.hints.length, 0, "what is further off is found by the sweep");
    const claimed = await probe.world.store.claim({ taskId, epoch, beat }, "me", probe.world.now() + MINUTE);
    assert.equal(claimed?.waiting, undefined);
    assert.ok((claimed?.dueAt ?? 0) <= probe.world.now() + MINUTE, "somebody looks whether this one lives");
  });

  test("is offered by the sweep at its time, not a lease later", async () => {
    const taskId = await probe.start((step) => step.sleep("ten", "10m"), { delivery: { timeoutSec: 3_600 } });
    probe.world.skip(10 * MINUTE);
    await probe.world.sweep();
    assert.deepEqual(
      probe.world.hints.filter(({ hint }) => hint.taskId === taskId).map(({ delaySec }) => delaySec),
      [0],
    );
    await probe.go();
    assert.equal((await probe.last(taskId))?.state, "TASK_STATE_COMPLETED");
  });

  test("is not touched by hints from before it was left", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?"));
    await probe.world.work({ taskId, epoch: 1, beat: 0 });
    assert.equal((await headOf(taskId)).epoch, 1);
  });

  test("is cancelled like any other", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?"));
    await probe.world.cancel(taskId);
    const head = await headOf(taskId);
    assert.equal(head.state, "TASK_STATE_CANCELED");
    assert.equal(head.waiting, undefined);
    assert.equal(head.dueAt, undefined);
    await probe.world.work({ taskId, epoch: head.epoch, beat: head.beat });
    assert.equal((await probe.last(taskId))?.state, "TASK_STATE_CANCELED");
  });

  test("ends when its deadline comes, though it would sleep longer", async () => {
    const taskId = await probe.start((step) => step.sleep("long", "1d"), { delivery: { timeoutSec: 1_000 } });
    await probe.pass(1_000_000);
    assert.equal((await probe.last(taskId))?.error?.code, "timeout");
  });
});

describe("an answer that comes while its worker does something else", () => {
  const handle = (release: Promise<unknown>) => async (step: Step) => {
    const [name] = await Promise.all([
      step.ask("name", "Your name?").then((name) => step.run("greet", () => `Hello ${name}`)),
      step.run("work", () => release),
    ]);
    return name;
  };
  const asked = (taskId: string) => async () => (await probe.view(taskId)).question !== undefined;
  const greeted = (taskId: string) => async () => (await probe.view(taskId)).steps.has("greet");

  test("is taken at once by a worker that is told", async () => {
    const release = Promise.withResolvers<number>();
    const hint = await probe.admit(handle(release.promise));
    let told = () => {};
    const listen = async (_taskId: string, fn: () => void) => {
      told = fn;
      return () => {};
    };
    const working = probe.world.work(hint, { listen });
    await until("the question is asked", asked(hint.taskId));
    await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
    told();
    await until("the answer is taken", greeted(hint.taskId));
    release.resolve(1);
    await working;
    assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
    assert.equal((await headOf(hint.taskId)).epoch, 1);
  });

  test("is taken at the next beat by one that is not", async () => {
    const release = Promise.withResolvers<number>();
    const hint = await probe.admit(handle(release.promise));
    const working = probe.world.work(hint);
    await until("the question is asked", asked(hint.taskId));
    await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
    probe.world.skip(probe.world.timing.beatMs);
    await until("the answer is taken", greeted(hint.taskId));
    release.resolve(1);
    await working;
    assert.equal((await probe.last(hint.taskId))?.content, "Hello Ada");
  });

  test("a cancel reaches a worker that is told, and its signal fires", async () => {
    let fired = false;
    const hint = await probe.admit((step) =>
      step.run("work", async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        fired = true;
      }),
    );
    let told = () => {};
    const listen = async (_taskId: string, fn: () => void) => {
      told = fn;
      return () => {};
    };
    const working = probe.world.work(hint, { listen });
    await until("the worker listens", async () => (await headOf(hint.taskId)).epoch === 1);
    await wait(30);
    await probe.world.cancel(hint.taskId);
    told();
    await working;
    await until("the signal has fired", () => fired);
    assert.equal((await probe.last(hint.taskId))?.state, "TASK_STATE_CANCELED");
  });
});

describe("near its invocation's end", () => {
  test("a handler is left at the next step boundary, and goes on at once elsewhere", async () => {
    const ran: string[] = [];
    const hint = await probe.admit(
      async (step) => {
        for (const name of ["a", "b", "c"])
          await step.run(name, () => {
            ran.push(name);
            if (name === "b") probe.world.skip(880_000 - 1);
          });
        return "done";
      },
      { delivery: { timeoutSec: 3_600 } },
    );
    const endsAt = probe.world.now() + 890_000;
    await probe.world.work(hint, { endsAt });
    assert.deepEqual(ran, ["a", "b"]);
    const head = await headOf(hint.taskId);
    assert.ok(head.waiting === true && head.calm === 1);
    assert.deepEqual(
      probe.world.hints.map(({ delaySec }) => delaySec),
      [0],
    );
    await probe.go();
    assert.deepEqual(ran, ["a", "b", "c"]);
    assert.equal((await probe.last(hint.taskId))?.content, "done");
  });
});

describe("what persons take", () => {
  test("is not the task's time", async () => {
    const taskId = await probe.start(
      async (step) => {
        await step.ask("name", "Your name?");
        await step.sleep("most of it", "4m");
        return "done";
      },
      { delivery: { timeoutSec: 300 } },
    );
    await probe.pass(12 * HOUR);
    await probe.answer(taskId, "Ada");
    await probe.pass(4 * MINUTE);
    assert.equal((await probe.last(taskId))?.content, "done");
  });

  test("is counted while a worker runs, too: its deadline stands still, and goes on with the answer", async () => {
    const hint = await probe.admit(
      async (step) => {
        await Promise.all([step.ask("name", "Your name?"), step.run("endless", () => new Promise(() => {}))]);
      },
      { delivery: { timeoutSec: 300 } },
    );
    const { world } = probe;
    const working = world.work(hint, { endsAt: world.now() + 100 * HOUR });
    await until("the question is asked", async () => (await probe.view(hint.taskId)).question !== undefined);
    await wait(30);
    world.skip(2 * HOUR);
    await wait(30);
    assert.equal((await probe.view(hint.taskId)).end, undefined);
    await probe.reply(hint.taskId, "input_reply", { input: "Ada" });
    world.skip(world.timing.beatMs);
    await until("the answer is there", async () => (await probe.view(hint.taskId)).question === undefined);
    await wait(100);
    world.skip(300_000);
    await working;
    assert.equal((await probe.last(hint.taskId))?.error?.code, "timeout");
  });
});

test("clocks five minutes apart change no outcome", async () => {
  const { world } = probe;
  const runs: string[] = [];
  const handle = async (step: Step) => {
    const times = [step.now().getTime()];
    for (const minutes of [1, 4, 9]) {
      await step.sleep(`sleep ${minutes}`, minutes * MINUTE);
      await step.run(`run ${minutes}`, () => runs.push(`run ${minutes}`));
      times.push(step.now().getTime());
    }
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    return "done";
  };
  const hint = await probe.admit(handle, { delivery: { timeoutSec: 3_600 } });
  world.hints.push({ hint, delaySec: 0 });
  let turn = 0;
  while ((await probe.view(hint.taskId)).end === undefined) {
    assert.ok(turn < 100, "it goes on");
    for (const taken of world.hints.splice(0)) {
      world.skip(taken.delaySec * 1_000);
      const skew = [5, -5, 0][turn++ % 3] ?? 0;
      const now = () => world.now() + skew * MINUTE;
      await world.work(taken.hint, { clock: { now, timer: world.clock.timer }, endsAt: now() + 900_000 });
    }
    world.skip(MINUTE);
    await world.sweep();
  }
  assert.equal((await probe.last(hint.taskId))?.content, "done");
  assert.deepEqual(runs, ["run 1", "run 4", "run 9"]);
});

describe("claims", () => {
  test("that leave their task in good order are not counted as dead, however many", async () => {
    const taskId = await probe.start(async (step) => {
      await step.ask("name", "Your name?");
      return "done";
    });
    for (let n = 0; n < 8; n++) {
      const { epoch, beat } = await headOf(taskId);
      await probe.world.work({ taskId, epoch, beat });
    }
    assert.equal((await headOf(taskId)).epoch, 9);
    await probe.answer(taskId, "Ada");
    assert.equal((await probe.last(taskId))?.content, "done");
  });

  test("five that die after one in good order end the task, and say where", async () => {
    const taskId = await probe.start(async (step) => {
      await step.sleep("night", "4m");
      await step.run("deadly", () => 1);
    });
    probe.world.skip(4 * MINUTE);
    for (let n = 0; n < 5; n++) {
      const { epoch, beat } = await headOf(taskId);
      assert.equal((await probe.view(taskId)).end, undefined);
      // The process dies after it has noted which step it begins.
      const store: Store = {
        ...probe.world.store,
        append: (id, entry, expiresAt) =>
          entry.claim === true ? probe.world.store.append(id, entry, expiresAt) : new Promise(() => {}),
      };
      const dead = { now: probe.world.now, timer: () => () => {} };
      void probe.world.work({ taskId, epoch, beat }, { store, clock: dead });
      await until("the worker has claimed", async () => (await probe.view(taskId)).claims.length > n);
      await until("the step is reached", async () => n === 0 || (await headOf(taskId)).running === "deadly");
    }
    const { epoch, beat } = await headOf(taskId);
    await probe.world.work({ taskId, epoch, beat });
    assert.match((await probe.last(taskId))?.error?.message ?? "", /died 5 times in a row in step "deadly"/);
  });
});
