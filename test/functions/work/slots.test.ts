import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../../shared/agents/index.ts";
import { isTerminal } from "../../../shared/wire/index.ts";
import { SlotLoad } from "../../support/slot-load.ts";

const MINUTE = 60_000;
/** Each test has a deployment and a clock of its own, and waits, now and then, for its handlers to be seen to wait. */
const SIDE_BY_SIDE = { concurrency: 4 };

/** So short a sleep is waited for in the invocation: the task keeps its slot. */
const holdSlot = async (step: Step, times = 1) => {
  for (let n = 0; n < times; n++) await step.sleep("hold", "4s");
};

/** Numbers from 0 to 1 that are the same each time (mulberry32). */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

describe("three slots", SIDE_BY_SIDE, () => {
  test("under 200 tasks at once of several senders: never more, none idle, in order and fair", async () => {
    const load = new SlotLoad((step) => holdSlot(step), { max: 3 });
    for (let n = 0; n < 160; n++) await load.admit("a");
    for (let n = 0; n < 20; n++) for (const from of ["b", "c"]) await load.admit(from);
    await load.end();
    assert.equal(load.most, 3);
    assert.ok((await load.states()).every((state) => state === "COMPLETED"));
    const sender = new Map(load.tasks.map(({ id, from }) => [id, from]));
    for (const from of ["a", "b", "c"]) {
      const ofSender = (id: string) => sender.get(id) === from;
      assert.deepEqual(
        load.begun.filter(ofSender),
        load.tasks.map(({ id }) => id).filter(ofSender),
        "one sender's tasks are taken in order",
      );
    }
    // The first three found slots that were free; then the senders take turns while each has tasks.
    const turns = load.begun.slice(3, 63).map((id) => sender.get(id));
    assert.deepEqual(turns, Array.from({ length: 20 }, () => ["a", "b", "c"]).flat());
  });

  test("tasks that sleep give theirs away and get one again", async () => {
    const load = new SlotLoad(
      async (step) => {
        await holdSlot(step);
        await step.sleep("long", "1h");
        await holdSlot(step);
      },
      { max: 3 },
    );
    for (let n = 0; n < 20; n++) await load.admit("a");
    await load.until("all sleep", async () => (await load.heads()).every(({ waiting }) => waiting === true));
    assert.equal((await load.slots()).live.size, 0);
    await load.end();
    assert.equal(load.most, 3);
    assert.ok((await load.states()).every((state) => state === "COMPLETED"));
  });

  test("are all free after everything was killed again and again, and the rest has ended", async () => {
    for (const seed of [1, 2, 3]) {
      const random = chance(seed);
      let calm = false;
      const load = new SlotLoad(
        async (step) => {
          await holdSlot(step);
          await step.sleep("long", "10m");
          await step.run("work", () => 1);
        },
        {
          max: 3,
          fate: () => (calm || random() > 0.08 ? undefined : random() < 0.5 ? "before" : "after"),
          copies: () => (random() < 0.2 ? [0, random() * MINUTE] : [random() < 0.1 ? MINUTE : 0]),
        },
      );
      for (let n = 0; n < 40; n++) await load.admit(`s${n % 3}`);
      for (const n of [5, 20, 39]) {
        const { id, from } = load.tasks[n] ?? { id: "", from: "" };
        await load.simulation.control({ taskId: id, from, kind: "cancel", revision: 2 });
      }
      await load.simulation.advance(60 * MINUTE);
      calm = true;
      await load.end(false);
      assert.equal(load.most, 3, `seed ${seed}`);
    }
  });
});

describe("a task that waits for a slot", SIDE_BY_SIDE, () => {
  const full = async (input = "", timeoutSec?: number) => {
    const load = new SlotLoad((step, times) => holdSlot(step, Number(times) || 1), { max: 1 });
    await load.admit("a", "30");
    await load.simulation.advance(0);
    await load.admit("b", input, timeoutSec);
    await load.simulation.advance(0);
    assert.deepEqual((await load.slots()).queued, 1);
    assert.ok((await load.head(1)).queued);
    return load;
  };

  test("is cancelled without one", async () => {
    const load = await full();
    const [, { id, from } = { id: "", from: "" }] = load.tasks;
    await load.simulation.control({ taskId: id, from, kind: "cancel", revision: 2 });
    assert.equal((await load.head(1)).state, "TASK_STATE_CANCELED");
    assert.equal((await load.slots()).queued, 0);
    await load.end();
    assert.deepEqual(await load.states(), ["COMPLETED", "CANCELED"]);
    assert.equal(load.begun.length, 1);
  });

  test("ends at its deadline without one", async () => {
    const load = await full("", 20);
    await load.until("the second ends", async () => isTerminal((await load.head(1)).state));
    const { taskId, deadline } = await load.head(1);
    assert.equal((await load.head(0)).state, "TASK_STATE_WORKING");
    assert.ok(load.simulation.clock.now() - deadline < 1_000);
    const event = load.simulation.publisher.events(taskId).at(-1)?.event;
    assert.equal(event?.error?.code, "timeout");
    await load.end();
    assert.equal(load.begun.length, 1);
  });

  test("does not end while the deadline has moved, for a person has had the task", async () => {
    const load = new SlotLoad(
      async (step, input) => {
        if (input === "ask") await step.ask("q", "?", { timeout: "1d" });
        await holdSlot(step, 20);
      },
      { max: 1 },
    );
    const id = await load.admit("a", "ask", 60);
    await load.simulation.advance(30_000);
    await load.admit("b");
    await load.simulation.advance(40_000);
    const answer = { taskId: id, from: "a", kind: "input_reply", revision: 3, a2a: { input: "x" } } as const;
    await load.simulation.control(answer);
    await load.until("it waits", async () => (await load.head(0)).queued !== undefined);
    await load.until("the other one ends", async () => isTerminal((await load.head(1)).state));
    await load.end();
    const [first] = await load.states();
    // Of its sixty seconds it had slept none when it was asked; it waited for the slot for about forty.
    assert.equal(first, "FAILED");
    assert.equal(load.simulation.publisher.events(id).at(-1)?.event.error?.code, "timeout");
    const ended = load.simulation.publisher.events(id).at(-1)?.event.createdAt;
    assert.ok(Date.parse(ended ?? "") >= (await load.head(0)).deadline + 60_000);
  });

  test("is asked for its status like any other, and stays where it is", async () => {
    const load = await full();
    const [, { id, from } = { id: "", from: "" }] = load.tasks;
    await load.simulation.control({ taskId: id, from, kind: "status", revision: 2 });
    const said = load.simulation.publisher.events(id).map(({ event }) => `${event.revision} ${event.kind}`);
    assert.deepEqual(said, ["1 accepted", "2 status"]);
    assert.equal((await load.slots()).queued, 1);
    await load.end();
    assert.deepEqual(await load.states(), ["COMPLETED", "COMPLETED"]);
  });
});

describe("a slot that nobody has handed on, for its worker died", SIDE_BY_SIDE, () => {
  /** The first task holds the only slot for so many turns; its worker dies when it has given it up. */
  const orphaned = async (turns: number, copies?: () => readonly number[]) => {
    let dying = true;
    const load = new SlotLoad((step, times) => holdSlot(step, Number(times) || 1), {
      max: 1,
      fate: ({ kind }) => {
        if (!dying || kind !== "store.settle") return undefined;
        dying = false;
        return "after";
      },
      ...(copies && { copies }),
    });
    await load.admit("a", String(turns));
    for (const from of ["b", "c"]) await load.admit(from);
    const isFree = async () => !dying && (await load.slots()).live.size === 0;
    await load.until("the slot is free", isFree, false);
    return load;
  };

  test("is given to the one that is next, although it is another's hint that comes late", async () => {
    let hints = 0;
    const load = await orphaned(1, () => (++hints === 3 ? [0, 10_000] : [0]));
    await load.simulation.advance(10_000);
    assert.equal(load.begun.length, 3, "the other one is let in after it");
    assert.deepEqual(
      load.begun,
      load.tasks.map(({ id }) => id),
    );
    await load.end(false);
  });

  test("is handed on by the sweep within a minute, however seldom it looks at those who wait", async () => {
    const load = await orphaned(150);
    assert.equal(load.begun.length, 1);
    await load.simulation.advance(MINUTE);
    assert.equal(load.begun.length, 2);
    await load.end(false);
  });
});

describe("a limit that changes under way", SIDE_BY_SIDE, () => {
  const busy = async (max: number, tasks: number) => {
    const load = new SlotLoad((step) => holdSlot(step, 20), { max });
    for (let n = 0; n < tasks; n++) await load.admit(`s${n % 2}`);
    await load.simulation.advance(1_000);
    return load;
  };

  test("raised: the new slots are filled within a minute", async () => {
    const load = await busy(2, 20);
    load.deploy(6);
    await load.simulation.advance(MINUTE);
    const { live, queued } = await load.slots();
    assert.deepEqual([live.size, queued], [6, 14]);
    // Who had begun before knows the old limit, and leaves it to the sweep to hand its slot on.
    await load.end(false);
    assert.equal(load.most, 6);
  });

  test("lowered: nobody is let in before there are fewer", async () => {
    const load = await busy(6, 20);
    load.deploy(2);
    const before = load.begun.length;
    await load.until("the first end", async () => (await load.slots()).live.size < 6);
    await load.until("there are two", async () => (await load.slots()).live.size <= 2);
    assert.equal(load.begun.length, before);
    load.most = 0;
    await load.end();
    assert.equal(load.most, 2);
  });

  test("lifted: all who wait are let in, and hold no slots", async () => {
    const load = await busy(2, 20);
    load.deploy(0);
    await load.simulation.advance(MINUTE);
    const { live, queued } = await load.slots();
    assert.deepEqual([live.size, queued], [2, 0]);
    assert.equal(load.begun.length, 20);
    await load.end();
  });

  test("introduced: who works goes on, and who comes then takes slots", async () => {
    const load = await busy(0, 5);
    assert.equal((await load.slots()).live.size, 0);
    load.deploy(2);
    for (let n = 0; n < 5; n++) await load.admit("late");
    await load.simulation.advance(1_000);
    assert.deepEqual([(await load.slots()).live.size, (await load.slots()).queued], [2, 3]);
    await load.end();
    assert.ok((await load.states()).every((state) => state === "COMPLETED"));
  });
});

describe("death at a write", SIDE_BY_SIDE, () => {
  for (const when of ["before", "after"] as const)
    test(`right ${when} any of them: all tasks end, and all slots are free`, async (t) => {
      const kinds = new Map<string, number>();
      for (let n = 1, met = true; met; n++) {
        met = false;
        let writes = 0;
        let at = "";
        const load = new SlotLoad(
          async (step) => {
            await step.run("work", () => 1);
            await step.sleep("long", "10m");
          },
          {
            max: 1,
            fate: (write) => {
              if (++writes !== n) return undefined;
              met = true;
              at = `${write.by} ${write.kind}`;
              return when;
            },
          },
        );
        for (let of = 0; of < 3; of++) await load.admit(`s${of}`);
        await load.simulation.advance(0);
        const [, , { id, from } = { id: "", from: "" }] = load.tasks;
        await load.simulation.control({ taskId: id, from, kind: "cancel", revision: 2 });
        await load.end(false).catch((cause: unknown) => {
          throw new Error(`killed ${when} write ${n} (${at})`, { cause });
        });
        assert.equal(load.most, 1, at);
        const [first, second, third] = await load.states();
        assert.deepEqual([first, second], ["COMPLETED", "COMPLETED"], at);
        assert.ok(third === "CANCELED" || third === "COMPLETED", at);
        if (met) kinds.set(at, (kinds.get(at) ?? 0) + 1);
      }
      for (const [kind, times] of kinds) t.diagnostic(`${times} ${kind}`);
      for (const kind of ["claimSlot", "queue", "suspend", "settle"])
        assert.ok(kinds.has(`work store.${kind}`), kind);
    });
});

describe("a line that is full", SIDE_BY_SIDE, () => {
  const fill = async (maxQueued: number) => {
    const load = new SlotLoad((step) => holdSlot(step, 5), { max: 1, policy: { maxQueued } });
    for (let n = 0; n < maxQueued + 1; n++) {
      await load.admit("a");
      await load.simulation.advance(0);
    }
    return load;
  };

  for (const maxQueued of [1, 5, 30])
    test(`turns away the next of ${maxQueued}, and takes tasks again when one has left`, async () => {
      const load = await fill(maxQueued);
      assert.equal((await load.slots()).queued, maxQueued);
      assert.ok((await load.heads()).every(({ reject }) => reject === undefined));
      await load.admit("b");
      const { reject } = await load.head(maxQueued + 1);
      assert.deepEqual(reject, {
        code: "overloaded",
        message: `overloaded: ${maxQueued} tasks wait already, of at most about ${maxQueued}`,
      });
      await load.until("one has left", async () => (await load.slots()).queued < maxQueued);
      await load.admit("b");
      assert.equal((await load.head(maxQueued + 2)).reject, undefined);
    });

  test("is no reason where the agent has no limit, nor before the other rules", async () => {
    const load = await fill(1);
    await load.simulation.admit({ skill: "none", a2a: "", from: "a" }).then(async ({ taskId }) => {
      assert.equal((await load.simulation.store.head(taskId))?.reject?.code, "unknown_skill");
    });
    load.deploy(0);
    await load.admit("a");
    assert.equal((await load.head(2)).reject, undefined);
  });
});
