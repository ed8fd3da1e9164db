import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FatalError, type Retry, type Step } from "../../shared/agents/index.ts";
import { MAX_ATTEMPTS, pauseMs, retryPolicy } from "../../shared/steps/retry.ts";
import { Probe } from "../support/probe.ts";
import { until } from "../support/until.ts";

const probe = new Probe({ timeoutSec: { default: 86_400, max: 86_400 } });
/** Retries at once. */
const quick: Retry = { initial: 0 };
/** Pauses that no invocation waits for, as far as chance lets them. */
const slow: Retry = { attempts: 100, initial: "10m", max: "10m" };

const fails = (message: string) => () => Promise.reject(new RangeError(message));
const caught = (error: unknown) =>
  error instanceof Error ? `${error.constructor.name} ${error.name} ${error.message}` : "no error";

describe("step.run", () => {
  test("tries again until an attempt succeeds, and tells each which it is", async () => {
    const attempts: number[] = [];
    const taskId = await probe.start((step) =>
      step.run(
        "flaky",
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error("not yet");
          return "at last";
        },
        { retry: quick },
      ),
    );
    assert.equal((await probe.last(taskId))?.content, "at last");
    assert.deepEqual(attempts, [1, 2, 3]);
    const view = await probe.view(taskId);
    assert.equal(view.steps.get("flaky")?.attempts, 3);
    assert.equal(view.open.size, 0);
  });

  for (const [name, retry, expected] of [
    ["three times", undefined, 3],
    ["as often as it is told", { ...quick, attempts: 5 }, 5],
    ["once", false, 1],
  ] as const)
    test(`fails for good when it was tried ${name}, in the words of the last error`, async () => {
      let ran = 0;
      const taskId = await probe.start((step) =>
        step.run(
          "bad",
          ({ attempt }) => fails(`${++ran} ${attempt}`)(),
          retry === undefined ? {} : { retry },
        ),
      );
      const last = await probe.last(taskId);
      assert.equal(last?.error?.code, "internal");
      assert.equal(last?.error?.message, `RangeError: ${expected} ${expected}`);
    });

  test("throws what has failed for good again on each run, without running it", async () => {
    let ran = 0;
    const seen: string[] = [];
    const errors = [new RangeError("range"), new FatalError("fatal"), "text", { odd: true }];
    const taskId = await probe.start(async (step) => {
      const all = [];
      for (const [n, error] of errors.entries())
        all.push(
          await step
            .run(
              `bad ${n}`,
              () => {
                ran++;
                throw error;
              },
              { retry: { ...quick, attempts: 1 } },
            )
            .catch(caught),
        );
      seen.push(all.join("; "));
      await step.sleep("night", "8h");
      return "done";
    });
    await probe.pass(8 * 3_600_000);
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.equal(ran, errors.length);
    const expected = [
      "Error RangeError range",
      "FatalError FatalError fatal",
      "Error Error text",
      "Error Error object",
    ];
    assert.deepEqual(seen, [expected.join("; "), expected.join("; ")]);
  });

  test("does not try again what no retry can mend", async () => {
    for (const [fn, message] of [
      [() => Promise.reject(new FatalError("never")), /FatalError: never/],
      [() => 1n, /NotJsonError: .*bigint/],
    ] as const) {
      let ran = 0;
      const taskId = await probe.start((step) =>
        step.run("bad", () => {
          ran++;
          return fn();
        }),
      );
      assert.match((await probe.last(taskId))?.error?.message ?? "", message);
      assert.equal(ran, 1);
    }
  });

  test("leaves the task for a long pause, and counts on in another invocation", async () => {
    const attempts: number[] = [];
    let starts = 0;
    const taskId = await probe.start((step) => {
      starts++;
      return step.run(
        "busy",
        ({ attempt }) => {
          attempts.push(attempt);
          if (starts < 3) throw new Error("busy");
          return "done";
        },
        { retry: slow },
      );
    });
    for (let n = 0; n < 10 && (await probe.view(taskId)).end === undefined; n++)
      await probe.pass(10 * 60_000);
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.deepEqual(
      attempts,
      attempts.map((_, index) => index + 1),
    );
    const opened = (await probe.world.store.entries(taskId, 1)).flatMap(({ opens = [] }) => opens);
    assert.ok(opened.length >= 2);
    assert.deepEqual(opened[0]?.error, { name: "Error", message: "busy" });
    assert.equal((await probe.world.store.head(taskId))?.epoch, 1 + opened.length);
  });

  test("ends an attempt at its timeout: its signal fires, and it counts as failed", async () => {
    let aborted = 0;
    const hint = await probe.admit((step) =>
      step.run(
        "slow",
        ({ attempt, signal }) => {
          if (attempt === 2) return "quick";
          signal.addEventListener("abort", () => aborted++);
          return new Promise<string>(() => {});
        },
        { retry: quick, timeout: "10m" },
      ),
    );
    const working = probe.world.work(hint);
    await until("the step runs", async () => (await probe.world.store.head(hint.taskId))?.epoch === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    probe.world.skip(600_000);
    await working;
    assert.equal((await probe.last(hint.taskId))?.content, "quick");
    assert.equal(aborted, 1);
  });

  test("that always takes too long fails as TimeoutError", async () => {
    const taskId = await probe.start(async (step) => {
      const slow = step.run("slow", () => new Promise(() => {}), { retry: false, timeout: 20 });
      return await slow.catch(caught);
    });
    assert.match(
      (await probe.last(taskId))?.content ?? "",
      /^StepTimeout TimeoutError step "slow": expected an attempt to take at most 0.02 s/,
    );
  });

  test("cannot last longer than an invocation, and is told so before that is over", async () => {
    const hint = await probe.admit((step) =>
      step.run("endless", () => new Promise(() => {}), { retry: false }),
    );
    const working = probe.world.work(hint);
    await until("the step runs", async () => (await probe.world.store.head(hint.taskId))?.epoch === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    probe.world.skip(900_000 - probe.world.timing.marginMs);
    await working;
    const { error } = (await probe.last(hint.taskId)) ?? {};
    assert.match(error?.message ?? "", /"endless": expected an attempt to end within its invocation.*890 s/);
  });

  test("that did not have the whole of an invocation is begun again in another, and it does not count", async () => {
    const attempts: number[] = [];
    const hint = await probe.admit(async (step) => {
      await step.run("first", () => 1);
      return await step.run(
        "long",
        ({ attempt }) => {
          attempts.push(attempt);
          return attempts.length === 1 ? new Promise<string>(() => {}) : "done";
        },
        { retry: false },
      );
    });
    // The invocation is half over when the step begins.
    const { world } = probe;
    let now = world.now();
    const append: typeof world.store.append = async (...args) => {
      const put = await world.store.append(...args);
      if (args[1].steps?.[0]?.name === "first") world.skip(450_000);
      return put;
    };
    const endsAt = now + 900_000;
    const working = world.work(hint, { endsAt, store: { ...world.store, append } });
    await until("the step runs", () => attempts.length === 1);
    now = world.now();
    world.skip(endsAt - world.timing.marginMs - now);
    await working;
    assert.deepEqual(
      world.hints.map(({ delaySec }) => delaySec),
      [0],
    );
    await probe.go();
    assert.equal((await probe.last(hint.taskId))?.content, "done");
    assert.deepEqual(attempts, [1, 1]);
  });

  test("refuses options that are none, at once", async () => {
    const wrong: [(step: Step) => unknown, RegExp][] = [
      [
        (step) => step.run("a", () => 1, { retry: { attempts: 0 } }),
        /attempts of retry of step "a": .* 1 to 100/,
      ],
      [(step) => step.run("a", () => 1, { retry: { attempts: MAX_ATTEMPTS + 1 } }), /1 to 100, got 101/],
      [(step) => step.run("a", () => 1, { retry: { initial: -1 } }), /initial of retry of step "a"/],
      [(step) => step.run("a", () => 1, { timeout: "1w" as "1d" }), /timeout of step "a": .*"90s".*got "1w"/],
    ];
    for (const [handle, message] of wrong) {
      const taskId = await probe.start(handle);
      assert.match((await probe.last(taskId))?.error?.message ?? "", message);
    }
  });

  test("refuses a step inside a step", async () => {
    for (const inner of [
      (step: Step) => step.run("inner", () => 1),
      (step: Step) => step.sleep("inner", 1),
      (step: Step) => step.branch("b").artifact("inner", "x"),
    ]) {
      let ran = 0;
      const taskId = await probe.start((step) =>
        step.run("outer", (): unknown => {
          ran++;
          return inner(step);
        }),
      );
      assert.match(
        (await probe.last(taskId))?.error?.message ?? "",
        /^StepNestedError: step "inner": called within step "outer"/,
      );
      assert.equal(ran, 1);
    }
    // After the function has ended, and beside it, steps are called as ever.
    const taskId = await probe.start(async (step) => {
      await Promise.all([step.run("one", () => 1), step.run("two", async () => 2)]);
      return await step.run("three", () => "3");
    });
    assert.equal((await probe.last(taskId))?.content, "3");
  });
});

test("a FatalError may bring numbers for the result, as many and as long as there is room for", async () => {
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`n${n}`, n]));
  const long = { ["x".repeat(128)]: 1, ["x".repeat(129)]: 2 };
  for (const [metrics, told] of [
    [{ cost_usd: 0.5, odd: Number.NaN }, ["cost_usd"]],
    [many, Object.keys(many).slice(0, 100)],
    [long, ["x".repeat(128)]],
    [undefined, []],
  ] as const) {
    const taskId = await probe.start(() => {
      throw new FatalError("no ink", { ...(metrics && { metrics }) });
    });
    const { error, result } = (await probe.last(taskId)) ?? {};
    assert.equal(error?.message, "FatalError: no ink");
    assert.deepEqual(Object.keys(result?.metrics ?? {}), [...told, "elapsed_ms"]);
  }
});

describe("a handler that waits for something that is no step", () => {
  test("is ended in words when an invocation is over and nothing has happened", async () => {
    const hint = await probe.admit(() => new Promise(() => {}));
    const working = probe.world.work(hint);
    await until("the handler runs", async () => (await probe.world.store.head(hint.taskId))?.epoch === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    probe.world.skip(900_000 - probe.world.timing.marginMs);
    await working;
    assert.match(
      (await probe.last(hint.taskId))?.error?.message ?? "",
      /has waited for 890 s.*without a step under way.*step\.run/,
    );
  });
});

test("pauses grow, have an upper end, and are left to chance", () => {
  const policy = retryPolicy({ initial: "1s", max: "5s" }, "a");
  for (const [failed, most] of [
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 5_000],
    [99, 5_000],
  ] as const) {
    const pauses = Array.from({ length: 200 }, () => pauseMs(policy, failed));
    assert.ok(pauses.every((ms) => Number.isInteger(ms) && ms >= 0 && ms <= most));
    assert.ok(Math.max(...pauses) > most * 0.8 && Math.min(...pauses) < most * 0.2);
  }
  assert.deepEqual(retryPolicy(undefined, "a"), { attempts: 3, initialMs: 1_000, maxMs: 60_000 });
});
