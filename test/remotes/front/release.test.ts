import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Front } from "../../../shared/remotes/front/front.ts";
import { TELL_END_MS, UNDER_WAY_MS } from "../../../shared/remotes/front/limits.ts";
import { mayBeOpen } from "../../../shared/remotes/front/open.ts";
import { release } from "../../../shared/remotes/front/release.ts";
import { emptyView, foldEntry, type View } from "../../../shared/tasks/fold.ts";
import { memoryValues } from "../../../shared/testing/memory-values.ts";
import { FakeRemote, failing } from "./support/fake.ts";

const CALLED = { messageId: "m-1", contextId: "c-1" };

/** A journal with these steps, each with its result. */
function journal(steps: Readonly<Record<string, unknown>>): View {
  const view = emptyView();
  const stored = Object.entries(steps).map(([name, value]) => ({
    name: `remote/${name}`,
    kind: "run" as const,
    value: { text: JSON.stringify(value) },
    ms: 0,
  }));
  foldEntry(view, { place: 1, nonce: "", epoch: 1, at: 0, revision: 1, steps: stored });
  return view;
}

/** Tells the remote so many milliseconds after the end. */
async function tell(remote: FakeRemote, view: View, age = 0) {
  const front: Front = {
    remote: "fake",
    warn: () => {},
    ask: (what) => what(remote),
    terms: () => Promise.reject(new Error("not asked for")),
    now: () => age,
    scale: 1,
  };
  return await release({ values: memoryValues(), front }, { view, endedAt: 0 });
}

/** A remote that has a task of our message. */
async function atWork(): Promise<FakeRemote> {
  const remote = new FakeRemote(["wait"]);
  await remote.start({ ...CALLED, skill: "task", parts: [{ text: "do it" }] });
  return remote;
}

const working = { taskId: "remote-1", state: "TASK_STATE_WORKING", artifacts: [], observed: [] };

describe("what a remote is told of a task that is over", () => {
  const nothing: readonly [what: string, steps: Readonly<Record<string, unknown>>][] = [
    ["nothing was ever sent", { plan: {} }],
    ["its task is over", { call: CALLED, send: { ...working, state: "TASK_STATE_COMPLETED" } }],
    ["it has answered without a task", { call: CALLED, send: { whole: true } }],
    [
      "the message has certainly not arrived",
      { call: CALLED, send: { trouble: { again: true, unsure: false } } },
    ],
  ];
  for (const [what, steps] of nothing)
    test(`nothing, when ${what}`, async () => {
      const remote = await atWork();
      assert.equal(mayBeOpen(journal(steps)), false);
      assert.equal(await tell(remote, journal(steps)), "nothing");
      assert.deepEqual(remote.calls, ["start"]);
    });

  test("its task is cancelled by its id; by that of its message where no more is known", async () => {
    for (const steps of [
      { call: CALLED, send: working },
      { call: CALLED },
      { call: CALLED, send: { trouble: { unsure: true } } },
    ]) {
      const remote = await atWork();
      assert.ok(mayBeOpen(journal(steps)));
      assert.equal(await tell(remote, journal(steps)), "told");
      assert.deepEqual(remote.cancels, ["remote-1"]);
    }
  });

  test("a result that lies in the bucket may be one of a task that goes on", () => {
    const view = journal({ call: CALLED, send: working });
    const [send] = [...view.steps.values()].slice(-1);
    assert.ok(send);
    view.steps.set(send.name, { ...send, value: { ref: { key: "k", bytes: 1 } } });
    assert.ok(mayBeOpen(view));
  });

  test("an exchange that was cut off tells nothing: neither that a message did not arrive, nor that a task is over", async () => {
    for (const [steps, cut] of [
      [{ call: CALLED, send: "" }, "send"],
      [{ call: CALLED, send: working, look: "" }, "look"],
    ] as const) {
      const remote = await atWork();
      const view = journal(steps);
      const step = view.steps.get(`remote/${cut}`);
      assert.ok(step);
      const error = { name: "TimeoutError", message: "it was cut off" };
      view.steps.set(step.name, { ...step, value: { text: "" }, error });
      assert.ok(mayBeOpen(view));
      assert.equal(await tell(remote, view), "told");
      assert.deepEqual(remote.cancels, ["remote-1"]);
    }
  });

  test("a message that is nowhere to be found is looked for while it may be under way", async () => {
    const steps = { call: CALLED };
    assert.equal(await tell(new FakeRemote([]), journal(steps), UNDER_WAY_MS - 1), "later");
    assert.equal(await tell(new FakeRemote([]), journal(steps), UNDER_WAY_MS), "nothing");
  });

  test("nobody can tell where nothing is listed", async () => {
    const remote = Object.assign(await atWork(), { listed: false });
    assert.equal(await tell(remote, journal({ call: CALLED })), "unknown");
  });

  test("what cannot be reached is told later, until it is given up, also by who refuses us", async () => {
    const view = journal({ call: CALLED, send: working });
    const broken = async (code: Parameters<typeof failing>[0], age: number) => {
      const remote = await atWork();
      remote.fails.push({ at: "cancel", error: failing(code, true) });
      return await tell(remote, view, age);
    };
    assert.equal(await broken("unreachable", TELL_END_MS - 1), "later");
    assert.equal(await broken("unreachable", TELL_END_MS), "gave_up");
    // Credentials are rotated, and not on both sides at once.
    assert.equal(await broken("refused", TELL_END_MS - 1), "later");
    assert.equal(await broken("refused", TELL_END_MS), "gave_up");
    assert.equal(await broken("protocol", 0), "later");
    assert.equal(await broken("not_allowed", 0), "later");
    assert.equal(await broken("invalid", 0), "refused");
  });
});
