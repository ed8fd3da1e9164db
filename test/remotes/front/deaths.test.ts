import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TaskEvent } from "../../../shared/wire/index.ts";
import type { Write } from "../../../testing/process.ts";
import type { TestTask } from "../../../testing/task.ts";
import { type Act, artifact, asked, completed, FakeRemote, working } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

const SIDE_BY_SIDE = 8;
const SCRIPT: readonly Act[] = [
  working("one"),
  artifact("a", "1", { last: false }),
  "wait",
  artifact("a", "2", { append: true }),
  asked("Which?"),
  artifact("b", "B"),
  completed("done"),
];

/** What a requester has of a task in the end; texts about the progress may be fewer. */
function seen(events: readonly TaskEvent[]) {
  const once = [...new Map(events.map((event) => [event.revision, event])).values()];
  const last = once.at(-1);
  return {
    states: once
      .filter(({ state }) => state !== "TASK_STATE_WORKING")
      .map(({ kind, state }) => [kind, state]),
    artifacts: last?.result?.artifacts.map(({ id, digest }) => [id, digest]),
    content: last?.content,
  };
}

/** Plays a task once for each write of each process, which dies there; until a run meets no kill. */
async function atEachWrite(
  when: "before" | "after",
  of: {
    readonly remote: () => FakeRemote;
    readonly play: (task: TestTask) => Promise<unknown>;
    readonly check: (remote: FakeRemote, task: TestTask) => unknown;
  },
): Promise<number> {
  const goThrough = async (n: number) => {
    const remote = of.remote();
    let writes = 0;
    let met: Write | undefined;
    const fate = (write: Write) => {
      if (++writes !== n) return undefined;
      met = write;
      return when;
    };
    const { task } = await playWith(remote, { fate });
    try {
      await of.play(task);
      return { met, result: of.check(remote, task) };
    } catch (cause) {
      throw new Error(`killed ${when} write ${n} (${met?.by} ${met?.kind})`, { cause });
    }
  };
  const { result } = await goThrough(0);
  let next = 1;
  let last = Number.POSITIVE_INFINITY;
  const lane = async () => {
    while (next < last) {
      const n = next++;
      const { met, result: after } = await goThrough(n);
      if (met === undefined) last = Math.min(last, n);
      assert.deepEqual(after, result, `killed ${when} write ${n} (${met?.by} ${met?.kind})`);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
  return last - 1;
}

describe("whatever dies", () => {
  for (const streams of [false, true])
    for (const when of ["before", "after"] as const)
      test(`at any write, ${when} it, ${streams ? "with a stream" : "with looks"}: each message is executed once, and the task ends the same`, async () => {
        const writes = await atEachWrite(when, {
          remote: () => Object.assign(new FakeRemote(SCRIPT), { streams }),
          play: async (task) => {
            await task.untilWaiting();
            while (task.question === undefined) await task.skip("1m");
            await task.answer("the first");
            await task.outcome();
            await task.skip("1h");
          },
          check: (remote, task) => {
            assert.deepEqual(
              remote.executions.map(({ messageId }) => messageId),
              [`${task.id}-1`, `${task.id}-2`],
            );
            assert.deepEqual(remote.cancels, []);
            return seen(task.events);
          },
        });
        assert.ok(writes > 20, `${writes} writes`);
      });

  for (const [what, listed] of [
    ["a cancel of a task that waits", true],
    ["the same where messages cannot be looked for", false],
  ] as const)
    for (const when of ["before", "after"] as const)
      test(`at any write, ${when} it: ${what} reaches the remote`, async () => {
        await atEachWrite(when, {
          remote: () =>
            Object.assign(new FakeRemote(["wait", "wait", "wait", completed("done")]), { listed }),
          play: async (task) => {
            await task.skip("2s");
            await task.cancel();
            await task.skip("1h");
          },
          check: (remote, task) => {
            const [state] = [...remote.tasks.values()].map((of) => of.state);
            // Whoever dies between the message and its checkpoint cannot know of the task where nothing is listed.
            if (listed) assert.ok(state === undefined || state === "TASK_STATE_CANCELED", state);
            assert.ok(remote.executions.length <= 1);
            return task.events.some((event) => event.state === "TASK_STATE_CANCELED" || !listed);
          },
        });
      });

  test("at any write: the remote hears of a deadline", async () => {
    await atEachWrite("before", {
      remote: () => new FakeRemote([asked("Which?")]),
      play: async (task) => {
        await task.skip("2s");
        await task.cancel();
        await task.skip("1h");
      },
      check: (remote) => {
        for (const { state } of remote.tasks.values()) assert.equal(state, "TASK_STATE_CANCELED");
      },
    });
  });
});
