import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { completed, FakeRemote, working } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

/** Has the agent do what it is asked and say nothing of it, the first time. */
function mute<Of extends readonly unknown[], To>(call: (...of: Of) => Promise<To>) {
  let calls = 0;
  return async (...of: Of): Promise<To> => {
    const answer = await call(...of);
    return calls++ === 0 ? await new Promise<never>(() => {}) : answer;
  };
}

const DAY = { timeoutSec: 86_400 };

describe("an exchange that lasts longer than an invocation", () => {
  test("a message that was taken in silence is found, and not sent again", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.start = mute(remote.start.bind(remote));
    remote.find = mute(remote.find.bind(remote));
    const { task, warnings } = await playWith(remote, DAY);
    await task.skip("1h");
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.equal(task.events.at(-1)?.content, "done");
    assert.deepEqual(
      warnings.map((of) => [of.remote, of.step, of.code, of.attempt, of.reason]),
      [1, 2].map((attempt) => [
        "fake",
        "remote/send",
        "timeout",
        attempt,
        "fake did not answer before the end of an invocation",
      ]),
    );
    assert.equal(remote.executions.length, 1);
    const told = task.events.map((event) => event.content ?? "").filter((text) => text.startsWith("fake is"));
    assert.match(told.join("\n"), /^fake is not reached \(timeout\); .*\nfake is reached again$/);
  });

  test("a look in vain is followed by another", async () => {
    const remote = new FakeRemote(["wait", completed("done")]);
    remote.get = mute(remote.get.bind(remote));
    const { task } = await playWith(remote, DAY);
    await task.skip("1h");
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
  });

  test("a look in vain by whoever goes on after a worker with a stream is no stream that has gone on", async () => {
    const remote = Object.assign(new FakeRemote([working("on it"), "wait", completed("done")]), {
      streams: true,
    });
    remote.get = mute(remote.get.bind(remote));
    let dead = false;
    const fate = () => {
      // The first write after the message is that of its answer.
      if (dead || remote.executions.length === 0) return undefined;
      dead = true;
      return "after" as const;
    };
    const { task, warnings } = await playWith(remote, { ...DAY, fate });
    await task.skip("1h");
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.deepEqual([dead, remote.executions.length], [true, 1]);
    assert.deepEqual(
      warnings.map(({ step, code }) => [step, code]),
      [["remote/look", "timeout"]],
    );
  });

  test("a message that nobody can look for fails the task, and says why", async () => {
    const remote = Object.assign(new FakeRemote([working("on it"), "wait"]), { listed: false });
    remote.start = mute(remote.start.bind(remote));
    const { task } = await playWith(remote, DAY);
    await task.skip("1h");
    const { error } = await task.outcome();
    assert.match(error?.message ?? "", /fake may have the message, and cannot be asked/);
    assert.equal(remote.executions.length, 1);
  });
});
