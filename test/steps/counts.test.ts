import assert from "node:assert/strict";
import { after, afterEach, describe, test } from "node:test";
import * as z from "zod";
import type { Step } from "../../shared/agents/index.ts";
import { hintOf as hintAt, type WorkHint } from "../../shared/tasks/messages.ts";
import { type Documented, documentedCosts } from "../support/documented.ts";
import { itemBytes, rawItem, writeUnits } from "../support/item-size.ts";
import { Meter, ofPart, type Passed, usageOf } from "../support/meter.ts";
import { Probe } from "../support/probe.ts";
import { inTime, until } from "../support/until.ts";

/** What docs/table.md says of the table's requests, counted at the emulator under the functions themselves. */

const DAY_SEC = 86_400;
const HOUR_MS = 3_600_000;

const meter = new Meter();
const policy = { maxConcurrent: 0, timeoutSec: { default: DAY_SEC, max: 10 * DAY_SEC } };
const probe = new Probe(policy, { route: meter.route });
after(() => meter.stop());
afterEach(() => probe.world.hints.splice(0));

const documented = documentedCosts();

/** Asserts that something costs what the page says of it. */
async function costs(what: string, act: () => Promise<unknown>): Promise<void> {
  const seen = await counted(act);
  assert.ok(documented.has(what), `docs/table.md has no row ${JSON.stringify(what)}`);
  assert.deepEqual(
    costOf(seen),
    documented.get(what),
    seen.map(({ kind, body }) => `${kind} ${body}`).join("\n"),
  );
}

/** What went to the table meanwhile. */
async function counted(act: () => Promise<unknown>): Promise<Passed[]> {
  meter.reset();
  await act();
  return ofPart(meter.passed, "dynamodb");
}

function costOf(passed: readonly Passed[]): Documented {
  const { requests, writes, reads } = usageOf(passed);
  return { requests, writes, reads };
}

/** What has gone to NATS since the count began. */
const told = () => ofPart(meter.passed, "nats").map(({ kind }) => kind);

const put = z.object({ Item: rawItem });

/** The items that were put into a journal. */
function entriesPut(passed: readonly Passed[]) {
  const items = passed
    .filter(({ kind }) => kind === "dynamodb PutItem")
    .map((request) => ({ ...request, item: put.parse(JSON.parse(request.body)).Item }));
  return items.filter(({ item }) => item.sk?.S?.startsWith("e#"));
}

const sleeper = async (step: Step) => {
  await step.sleep("pause", "1h");
  return "rested";
};
const asker = (step: Step) => step.ask("colour", "Which colour?");

/** A task whose worker is within a step, and has a question open if it is to ask; `done` lets the step end. */
async function running({ asks = false } = {}) {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<string>();
  const hint = await probe.admit(async (step) => {
    const answer = asks ? asker(step) : Promise.resolve("nothing was asked");
    void answer.then(answered.resolve);
    await step.run("long", () => {
      begun.resolve();
      return gate.promise;
    });
    return await answer;
  });
  const worked = probe.world.work(hint);
  await inTime("the step runs", begun.promise);
  if (asks)
    await until("the question is put", async () => (await probe.last(hint.taskId))?.kind === "status");
  return {
    taskId: hint.taskId,
    answered: answered.promise,
    /** Resolves when the worker has left. */
    over: () => inTime("the worker leaves", worked),
    done() {
      gate.resolve();
      return inTime("the worker leaves", worked);
    },
  };
}

/** Waits until so many requests have been counted. */
function requests(count: number): Promise<unknown> {
  const seen = () => ofPart(meter.passed, "dynamodb");
  return until(`${count} requests`, () => seen().length >= count, { seen: () => seen().length });
}

/** The hint by which a task is taken up again. */
async function hintOf(taskId: string): Promise<WorkHint> {
  const head = await probe.world.store.head(taskId);
  assert.ok(head);
  return hintAt(head);
}

describe("a step", () => {
  const worked = (bytes: number, steps: number, name = "step") =>
    counted(() =>
      probe.start(async (step) => {
        // As JSON text a string takes two bytes more.
        for (let n = 0; n < steps; n++) await step.run(name, () => "x".repeat(bytes - 2));
        return "done";
      }),
    );

  for (const [bytes, units] of [
    [2, 1],
    [100, 1],
    [820, 1],
    [1_024, 2],
    [3_584, 4],
    [20_480, 21],
    [32_768, 33],
    [32_769, 1],
  ] as const)
    test(`with a result of ${bytes} bytes takes a request, ${units} write units and no read`, async () => {
      const [one, five] = [await worked(bytes, 1), await worked(bytes, 5)];
      const [first, many] = [costOf(one), costOf(five)];
      assert.deepEqual(
        { requests: many.requests - first.requests, writes: many.writes - first.writes, reads: many.reads },
        { requests: 4, writes: 4 * units, reads: 0 },
      );
    });

  test("takes its result, its name and at most 200 bytes, and a unit for each started KB of that", async () => {
    for (const bytes of [2, 840, 1_863, 1_864, 1_865, 1_866, 1_867, 1_868, 5_000, 32_768])
      for (const name of ["s", "n".repeat(200)]) {
        const [entry] = entriesPut(await worked(bytes, 1, name));
        assert.ok(entry);
        const size = itemBytes(entry.item);
        assert.equal(entry.writes, writeUnits(size), `an item of ${size} bytes`);
        const rest = size - bytes - name.length;
        assert.ok(rest > 100 && rest <= 200, `${rest} bytes besides the result and the name`);
      }
  });

  test("costs the same however many were before it: the ten-thousandth what the tenth does", async () => {
    const passed = await counted(() =>
      probe.start(async (step) => {
        for (let n = 1; n <= 10; n++) await step.run("step", () => n);
        // At once, for they share entries.
        for (let n = 10; n < 9_990; n += 499)
          await Promise.all(Array.from({ length: 499 }, (_, m) => step.run(`step ${n + m}`, () => n + m)));
        for (let n = 9_991; n <= 10_000; n++) await step.run("step", () => n);
        return "done";
      }),
    );
    const entries = entriesPut(passed);
    const names = entries.flatMap(({ item }) => item.steps?.L ?? []).map(({ M }) => M?.name?.S);
    assert.deepEqual([names[9], names[9_999], names.length], ["step#10", "step#20", 10_000]);
    const [tenth, last] = [entries[9], entries.at(-2)];
    assert.deepEqual([tenth?.item.steps?.L?.length, last?.item.steps?.L?.length], [1, 1]);
    for (const [name, entry] of Object.entries({ tenth, last })) {
      const { item: _, body: __, ...cost } = entry ?? { item: {}, body: "" };
      assert.deepEqual(cost, { kind: "dynamodb PutItem", items: 1, writes: 1, reads: 0 }, name);
    }
    assert.equal(usageOf(passed).reads, 0);
    // Between the last steps there is nothing else.
    const kinds = passed.slice(-12).map(({ kind }) => kind);
    assert.deepEqual(kinds, [...Array(11).fill("dynamodb PutItem"), "dynamodb UpdateItem"]);
  });
});

describe("a task", () => {
  test("with one step and no progress", () =>
    costs("with one step and no progress, from its admission to its end", () =>
      probe.start(async (step) => String(await step.run("one", () => 1))),
    ));

  test("with the largest payload that its head takes still takes ten write units at the most", async () => {
    const request = { a2a: "x", clientTaskRef: "r" };
    const length = (a2a: string) => {
      const { payload } = JSON.parse(probe.world.task({ ...request, a2a }).body);
      return JSON.stringify(payload).length;
    };
    const a2a = "x".repeat(1_024 - length("x") + 1);
    assert.equal(length(a2a), 1_024);
    const work = (of: string) =>
      counted(() =>
        probe.start(async (step) => String(await step.run("one", () => 1)), { ...request, a2a: of }),
      );
    assert.deepEqual(costOf(await work(a2a)), { requests: 5, writes: 10, reads: 0 });
    // One byte more, and it has an item of its own.
    assert.deepEqual(costOf(await work(`${a2a}x`)), { requests: 7, writes: 9, reads: 1 });
  });
});

describe("a worker that lives on", () => {
  for (const [what, asks, count] of [
    ["a worker that lives on, each 20 seconds", false, 1],
    ["the same with a question open", true, 2],
  ] as const)
    test(what, async () => {
      const task = await running({ asks });
      await costs(what, async () => {
        probe.world.skip(probe.world.timing.beatMs);
        await requests(count);
      });
      if (asks) await probe.reply(task.taskId, "input_reply", { input: "red" });
      await task.done();
    });
});

describe("a task that waits", () => {
  for (const [kind, handle] of [
    ["sleep", sleeper],
    ["ask", asker],
  ] as const)
    test(`${kind}: is left`, async () => {
      const hint = await probe.admit(handle);
      const passed = await counted(() => probe.world.work(hint));
      const [claim, opened, ...left] = passed;
      assert.deepEqual(
        [claim?.writes, opened?.kind, opened?.writes, opened?.reads],
        [1, "dynamodb PutItem", 1, 0],
      );
      assert.deepEqual(costOf(left), documented.get("leaving a task that waits"));
    });

  test("is taken up again", async () => {
    const taskId = await probe.start(sleeper);
    probe.world.skip(HOUR_MS);
    const hint = await hintOf(taskId);
    const passed = await counted(() => probe.world.work(hint));
    // What follows is its end.
    const [end, settled] = passed.splice(-2);
    assert.deepEqual([end?.writes, settled?.writes], [1, 2]);
    assert.deepEqual(costOf(passed), documented.get("taking up a task again, after a wait or a death"));
    assert.deepEqual(told(), ["nats read", "nats publish result"]);
  });

  test("`status`, and the reply that wakes it", async () => {
    const taskId = await probe.start(asker);
    await costs("`status`", () => probe.reply(taskId, "status", {}));
    await costs("`input_reply` to a task that waits", () =>
      probe.reply(taskId, "input_reply", { input: "red" }),
    );
    assert.equal(probe.world.hints.length, 1);
    assert.deepEqual(told(), ["nats read", "nats publish status"]);
    await probe.go();
    await costs("any control of a task that is over", () => probe.reply(taskId, "cancel", {}));
  });

  test("is cancelled", async () => {
    const taskId = await probe.start(asker);
    await costs("`cancel` of a task that waits, which is its end", () => probe.reply(taskId, "cancel", {}));
  });
});

describe("a running worker", () => {
  test("is told to stop", async () => {
    const task = await running();
    await costs("`cancel` of a running worker, which then reads it", async () => {
      await probe.reply(task.taskId, "cancel", {});
      await task.over();
    });
    assert.deepEqual(told(), ["nats read", "nats publish status", "nats publish status"]);
  });

  test("is answered", async () => {
    const task = await running({ asks: true });
    await costs("`input_reply` to a running worker, which then reads it", async () => {
      await probe.reply(task.taskId, "input_reply", { input: "red" });
      await inTime("the answer", task.answered);
    });
    await task.done();
  });

  test("that dies is followed by another, which notes each step before it begins", async () => {
    const hint = await probe.admit(async (step) => {
      for (const name of ["a", "b", "c"]) await step.run(name, () => name);
    });
    assert.ok(await probe.world.store.claim(hint, "dies", probe.world.now() + probe.world.timing.leaseMs));
    const passed = await counted(() => probe.world.work({ ...hint, epoch: 1 }));
    const taken = passed.splice(0, 3);
    assert.deepEqual(costOf(taken), documented.get("taking up a task again, after a wait or a death"));
    passed.splice(-2);
    const steps = costOf(passed);
    const one = documented.get("each further step");
    const more = documented.get("after a death, each new step");
    assert.ok(one && more);
    assert.deepEqual(steps, {
      requests: 3 * (one.requests + more.requests),
      writes: 3 * (one.writes + more.writes),
      reads: 0,
    });
  });
});

test("a run of `sweep`, and its look at a task", async () => {
  const taskId = await probe.start(sleeper);
  probe.world.skip(HOUR_MS);
  const passed = await counted(() => probe.world.sweep());
  const run = passed.filter(({ body }) => body.includes('"IndexName":"due"'));
  assert.deepEqual(costOf(run), documented.get("each run of `sweep`"));
  const look = passed.filter(({ body }) => body.includes(taskId));
  assert.deepEqual(costOf(look), documented.get("a look by `sweep`"));
  const hints = probe.world.hints.filter(({ hint }) => hint.taskId === taskId);
  assert.equal(hints.length, 1);
});
