import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Breaker, CircuitOpenError } from "../../../shared/policy/choosing/breaker.ts";
import { type Circuit, circuitRules } from "../../../shared/policy/choosing/circuit.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";
import { breakerOf, Call, fails, MINUTE, processes, START } from "./support/calls.ts";

test("one of many probes goes, in whatever order they reach the store", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      let scheduled = false;
      const { clock, breakers } = processes(6, async () => {
        if (scheduled) await scheduler.schedule(Promise.resolve());
      });
      await fails(breakerOf({ breakers }, 0), 5);
      clock.now += MINUTE;
      scheduled = true;
      const calls = breakers.map((breaker) => new Call(breaker));
      await scheduler.waitFor(Promise.all(calls.map(({ started }) => started)));
      assert.equal(calls.filter(({ passed }) => passed).length, 1);
      scheduled = false;
      for (const call of calls) await call.finish("good");
    }),
    { numRuns: 50 },
  );
});

test("a probe that tells nothing for a minute is taken for lost, and what it tells later counts no more", async () => {
  const { clock, breakers } = processes(1);
  const breaker = breakerOf({ breakers }, 0);
  await fails(breaker, 5);
  const probe = async (): Promise<Call> => {
    const call = new Call(breaker);
    await call.started;
    return call;
  };
  clock.now += MINUTE;
  const lost = await probe();
  clock.now += MINUTE - 1;
  assert.equal((await probe()).passed, false);
  clock.now += 1;
  const second = await probe();
  assert.equal(second.passed, true);
  await lost.finish("good");
  assert.equal((await probe()).passed, false);
  await second.finish("none");
  const third = await probe();
  assert.equal(third.passed, true, "one that was given up makes nobody wait");
  await third.finish("good");
  assert.equal((await probe()).passed, true);
});

test("four failures in a row open nothing, a fifth does, for a minute, and says so once", async () => {
  const { clock, breakers, said } = processes(1);
  const breaker = breakerOf({ breakers }, 0);
  await fails(breaker, 4);
  assert.equal(await breaker.around("ann", async () => "yes"), "yes");
  await fails(breaker, 4);
  assert.deepEqual(said, []);
  await fails(breaker, 1);
  assert.deepEqual(said, ["an agent that fails is left alone"]);
  const retryAt = START + MINUTE;
  for (clock.now of [START, retryAt - 1])
    await assert.rejects(
      breaker.around("ann", async () => assert.fail("called")),
      (error) =>
        error instanceof CircuitOpenError &&
        error.retryAt === retryAt &&
        /^circuit_open: ann /.test(error.message),
    );
  assert.equal(await breaker.around("bob", async () => "another"), "another");
  clock.now = retryAt;
  assert.equal(await breaker.around("ann", async () => "well"), "well");
  assert.equal(await breaker.around("ann", async () => "again"), "again");
});

test("what a call has brought, or thrown, is not lost when its end cannot be told", async () => {
  const store = memoryItems<Circuit>();
  const said: string[] = [];
  const breaker = new Breaker({
    store: { ...store, write: () => Promise.reject(new Error("no answer")) },
    now: () => START,
    rules: circuitRules(),
    telemetry: { warn: (message) => said.push(message), count: () => {} },
  });
  await assert.rejects(
    breaker.around("ann", () => Promise.reject(new Error("mine"))),
    /^Error: mine$/,
  );
  assert.equal(await breaker.around("ann", async () => "mine"), "mine");
  assert.deepEqual(said, ["the end of a call could not be told"]);
});
