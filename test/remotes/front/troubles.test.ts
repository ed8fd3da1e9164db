import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readRecord } from "../../../cli/record.ts";
import { timelineOf } from "../../../cli/timeline.ts";
import { CircuitOpenError } from "../../../shared/policy/choosing/breaker.ts";
import { RemoteError } from "../../../shared/remotes/exchange/index.ts";
import { completed, FakeRemote, failing } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

const told = (task: { events: readonly { kind: string; content: string }[] }) =>
  task.events.filter(({ kind }) => kind === "status").map(({ content }) => content);
const SECRET = "what the remote says";

describe("an exchange that fails", () => {
  test("each is one line of the log; the requester hears what has changed, once", async () => {
    const remote = new FakeRemote([completed("done")]);
    for (let n = 0; n < 3; n++) remote.fails.push({ at: "start", error: failing("unreachable", false) });
    remote.fails.push({ at: "start", error: new CircuitOpenError("fake", 0) });
    const { task, warnings } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.deepEqual(
      warnings.map(({ message, taskId, remote: of, step, code, attempt }) => [
        message,
        taskId,
        of,
        step,
        code,
        attempt,
      ]),
      ["unreachable", "unreachable", "unreachable", "circuit_open"].map((code, at) => [
        "an exchange with a remote agent has failed",
        task.id,
        "fake",
        "remote/send",
        code,
        at + 1,
      ]),
    );
    assert.ok(warnings.every(({ retryAt }) => typeof retryAt === "string"));
    const [first, second, third, ...more] = told(task);
    assert.match(first ?? "", /^fake is not reached \(unreachable\); tried again until about 2/);
    assert.match(second ?? "", /^fake is not reached \(circuit_open\)/);
    assert.equal(third, "fake is reached again");
    assert.deepEqual(more, []);
  });

  test("it is not said to be tried again when the task's time is over", async () => {
    const until = async (timeoutSec: number) => {
      const remote = new FakeRemote([completed("done")]);
      remote.fails.push({ at: "start", error: failing("unreachable", false) });
      const { task, simulation } = await playWith(remote, { timeoutSec });
      const began = simulation.clock.now();
      await task.outcome();
      const [, time = ""] = /until about (.*)$/.exec(told(task)[0] ?? "") ?? [];
      return Date.parse(time) - began;
    };
    const whole = await until(600);
    assert.ok(whole > 8_000 && whole < 600_000, `its tries end after ${whole} ms`);
    assert.equal(await until(8), 8_000);
  });

  test("looks in vain are told alike", async () => {
    const remote = new FakeRemote(["wait", completed("done")]);
    for (let n = 0; n < 3; n++) remote.fails.push({ at: "get", error: failing("timeout", true) });
    const { task, warnings } = await playWith(remote);
    await task.outcome();
    assert.deepEqual(
      warnings.map(({ step, code, attempt }) => [step, code, attempt]),
      [1, 2, 3].map((attempt) => ["remote/look", "timeout", attempt]),
    );
    assert.equal(told(task).filter((text) => text.includes("timeout")).length, 1);
  });

  test("one after which nothing is tried again has no such time, and no word of the remote's", async () => {
    const remote = new FakeRemote([completed("done")]);
    const error = new RemoteError("refused", "fake", "it answers 401", {
      sent: false,
      status: 401,
      says: SECRET,
    });
    remote.fails.push({ at: "start", error });
    const { task, simulation, warnings } = await playWith(remote);
    assert.match((await task.outcome()).error?.message ?? "", new RegExp(SECRET));
    assert.deepEqual(warnings, [
      {
        message: "an exchange with a remote agent has failed",
        taskId: task.id,
        remote: "fake",
        step: "remote/send",
        code: "refused",
        reason: "remote agent fake: it answers 401",
        attempt: 1,
      },
    ]);
    assert.deepEqual(told(task), []);
    const { store, values } = simulation;
    const stack = { label: "the test", store, values, [Symbol.dispose]: () => {} };
    const lines = await timelineOf(await readRecord(stack, task.id), simulation.clock.now());
    const sent = lines.find(({ name }) => name === "remote/send");
    assert.deepEqual([sent?.state, sent?.error?.code], ["done", "refused"]);
  });

  test("a message of unknown fate says so", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.listed = false;
    remote.fails.push({ at: "start", error: failing("lost", true) });
    const { task, warnings } = await playWith(remote);
    await task.outcome();
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ["lost", "unknown_fate"],
    );
  });

  for (const when of ["before", "after"] as const)
    test(`a worker that dies ${when} any write: every exchange is in the log, and nothing is told twice`, async () => {
      for (let dies = 1; ; dies++) {
        let writes = 0;
        const remote = new FakeRemote([completed("done")]);
        remote.fails.push({ at: "start", error: failing("unreachable", false) });
        remote.fails.push({ at: "start", error: failing("overloaded", false) });
        const { task, warnings } = await playWith(remote, {
          fate: () => (++writes === dies ? when : undefined),
        });
        await task.outcome();
        const codes = warnings.map(({ code }) => code);
        assert.deepEqual(codes, ["unreachable", "overloaded"], `write ${dies}`);
        const texts = told(task);
        assert.equal(new Set(texts).size, texts.length, texts.join());
        if (writes < dies) break;
      }
    });
});
