import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Cooldowns, type Cooling, cool } from "../../../shared/policy/choosing/cooldown.ts";
import {
  Escalation,
  escalate,
  escalationRules,
  type Refusals,
} from "../../../shared/policy/choosing/escalation.ts";
import { hopsOf, MAX_HOPS, nextHop } from "../../../shared/policy/choosing/hops.ts";
import { ContendedError, change } from "../../../shared/policy/choosing/items.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";

const START = 1_900_000_000_000;
const MINUTE = 60_000;
const pause = async () => {};

describe("cooldown", () => {
  const of = (seconds: Record<string, number>) => {
    const clock = { now: START };
    const cooldowns = new Cooldowns({ store: memoryItems<Cooling>(), now: () => clock.now, seconds, pause });
    return {
      clock,
      take: (skill: string, subject?: string, by?: string) => cooldowns.take({ skill, subject, by }),
    };
  };

  test("a skill rests for each subject on its own, to the millisecond; another skill not at all", async () => {
    const { clock, take } = of({ review: 30 });
    assert.equal(await take("review", "a/b#1"), undefined);
    clock.now += 1;
    assert.equal(await take("review", "a/b#1"), START + 30_000);
    assert.equal(await take("review", "a/b#2"), undefined);
    assert.equal(await take("review"), undefined);
    assert.equal(await take("review"), START + 30_001);
    assert.equal(await take("scan", "a/b#1"), undefined);
    assert.equal(await take("scan", "a/b#1"), undefined);
    clock.now = START + 29_999;
    assert.equal(await take("review", "a/b#1"), START + 30_000);
    clock.now = START + 30_000;
    assert.equal(await take("review", "a/b#1"), undefined);
    assert.equal(await take("review", "a/b#1"), START + 60_000);
  });

  test("task and general_task rest together, and no skill and subject are taken for others", async () => {
    const { take } = of({ general_task: 1, a: 1, "a#b": 1 });
    assert.equal(await take("task", "x"), undefined);
    assert.equal(await take("general_task", "x"), START + 1_000);
    assert.equal(await take("a", "b#c"), undefined);
    assert.equal(await take("a#b", "c"), undefined);
  });

  test("the same request is let through again, another's is not", async () => {
    const { take } = of({ review: 30 });
    assert.equal(await take("review", "x", "task_1 step"), undefined);
    assert.equal(await take("review", "x", "task_1 step"), undefined);
    assert.equal(await take("review", "x", "task_2 step"), START + 30_000);
    assert.equal(await take("review", "x"), START + 30_000);
  });

  test("of those that ask at once one is let through", async () => {
    const store = memoryItems<Cooling>();
    const asked = Array.from({ length: 5 }, (_, i) =>
      new Cooldowns({ store, now: () => START, seconds: { review: 1 }, pause }).take({
        skill: "review",
        by: String(i),
      }),
    );
    assert.equal((await Promise.all(asked)).filter((until) => until === undefined).length, 1);
  });

  test("whatever the clock and the rule do, nobody waits for longer than the rule says", () => {
    fc.assert(
      fc.property(fc.nat(10 ** 6), fc.nat(10 ** 6), fc.nat(10 ** 6), (now, until, ms) => {
        const { answer, next } = cool({ until }, now, { ms });
        assert.ok(answer >= 0 && answer <= ms);
        assert.equal(answer > 0, now < until && ms > 0);
        assert.equal(next?.value.until, answer === 0 ? now + ms : undefined);
      }),
    );
  });

  test("a day is the longest, and no cooldown is less than none", () => {
    for (const sec of [0, 86_400]) of({ review: sec });
    for (const sec of [-1, 86_401, Number.NaN])
      assert.throws(
        () => of({ review: sec }),
        new RegExp(`^RangeError: cooldown of "review": expected 0 to 86400 seconds, got ${sec}$`),
      );
  });
});

describe("hops", () => {
  test("twelve are as many as there may be", () => {
    assert.deepEqual([nextHop(0), nextHop(11), nextHop(12), nextHop(13)], [1, 12, undefined, undefined]);
    let hops: number | undefined = hopsOf({ traceId: "t" });
    let handed = 0;
    for (; hops !== undefined && handed < 100; handed++) hops = nextHop(hopsOf({ hops }));
    assert.equal(handed, MAX_HOPS + 1, "twelve times, and the thirteenth is refused");
  });

  test("absent is none, nonsense is all", () => {
    for (const trace of [undefined, null, "x", {}, { hops: null }, { hops: undefined }, { hops: 0 }, []])
      assert.equal(hopsOf(trace), 0, JSON.stringify(trace));
    for (const hops of [-1, 1.5, "3", Number.NaN, Number.POSITIVE_INFINITY, 12, 13, 1e300, {}, true])
      assert.equal(hopsOf({ hops }), MAX_HOPS, String(hops));
    assert.equal(hopsOf({ hops: 11 }), 11);
    fc.assert(
      fc.property(fc.anything(), (trace) => {
        const hops = hopsOf(trace);
        assert.ok(Number.isInteger(hops) && hops >= 0 && hops <= MAX_HOPS);
      }),
    );
  });
});

describe("escalation", () => {
  const of = () => {
    const clock = { now: START };
    const rules = escalationRules();
    const escalation = new Escalation({ store: memoryItems<Refusals>(), now: () => clock.now, rules, pause });
    return { clock, refused: (kind = "a") => escalation.refused(["r", kind]) };
  };

  test("the tenth within ten minutes is told of, once, and then for half an hour nothing", async () => {
    const { clock, refused } = of();
    const told: boolean[] = [];
    for (let i = 0; i < 25; i++) told.push(await refused());
    assert.deepEqual(
      told.flatMap((each, i) => (each ? [i] : [])),
      [9],
    );
    assert.equal(await refused("b"), false);
    clock.now += 30 * MINUTE - 1;
    for (let i = 0; i < 10; i++) assert.equal(await refused(), false);
    clock.now += 1;
    for (let i = 0; i < 9; i++) assert.equal(await refused(), false);
    assert.equal(await refused(), true);
  });

  test("ten within more than ten minutes are not told of", async () => {
    const { clock, refused } = of();
    assert.equal(await refused(), false);
    for (let i = 0; i < 8; i++) assert.equal(await refused(), false);
    clock.now += 10 * MINUTE;
    assert.equal(await refused(), false);
    clock.now -= 1;
    assert.equal(await refused(), false, "the one that is ahead of the clock does not count");
  });

  test("of many that refuse at once one tells", async () => {
    const store = memoryItems<Refusals>();
    const each = () => new Escalation({ store, now: () => START, rules: escalationRules(), pause });
    const told: boolean[] = [];
    for (let i = 0; i < 6; i++)
      told.push(
        ...(await Promise.all([each().refused(["a"]), each().refused(["a"]), each().refused(["a"])])),
      );
    assert.equal(told.filter(Boolean).length, 1);
  });

  test("whenever refusals come, none is told of within half an hour of the last, and none without ten in ten minutes", () => {
    const rules = escalationRules();
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 3 * MINUTE }), { minLength: 20, maxLength: 120 }),
        (gaps) => {
          let now = START;
          let known: Refusals | undefined;
          let last = Number.NEGATIVE_INFINITY;
          const times: number[] = [];
          for (const gap of gaps) {
            now += gap;
            const { answer, next } = escalate(known, now, rules);
            known = next?.value ?? known;
            assert.ok((known?.at.length ?? 0) < 10);
            times.push(now);
            // What comes in the silence is not counted.
            const recent = times.filter((at) => at > now - 10 * MINUTE && at >= last + 30 * MINUTE);
            assert.equal(answer, now >= last + 30 * MINUTE && recent.length >= 10, `at ${now - START}`);
            if (answer) last = now;
          }
        },
      ),
    );
  });
});

describe("a change", () => {
  test("is tried ten times when others are quicker, and keeps what it would have changed", async () => {
    const store = memoryItems<number>();
    let tries = 0;
    const busy = {
      ...store,
      write: async () => {
        tries++;
        return false;
      },
    };
    const one = (value = 0) => ({ answer: value, next: { value: value + 1, expiresAt: START } });
    await assert.rejects(change(busy, "k", one, pause), ContendedError);
    assert.equal(tries, 10);
    assert.equal(await store.read("k"), undefined);
  });

  test("loses none of those that come at once, in whatever order they reach the store", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const store = memoryItems<number>(() => scheduler.schedule(Promise.resolve()));
        const one = (value = 0) => ({ answer: value, next: { value: value + 1, expiresAt: START } });
        const all = Array.from({ length: 4 }, () => change(store, "k", one, pause));
        const answers = await scheduler.waitFor(Promise.all(all));
        assert.deepEqual(answers.toSorted(), [0, 1, 2, 3]);
      }),
      { numRuns: 50 },
    );
  });
});
