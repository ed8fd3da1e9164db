import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TaskState } from "../../../shared/wire/index.ts";
import { artifact, asked, authAsked, completed, FakeRemote, failing, working } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

const told = (task: { events: readonly { kind: string; content: string }[] }) =>
  task.events.filter(({ kind }) => kind === "status").map(({ content }) => content);

describe("a remote agent that is asked how far it is", () => {
  test("progress, artifacts and the end become ours, and nothing runs between two looks", async () => {
    const remote = new FakeRemote([
      working("reading"),
      "wait",
      artifact("report", "half"),
      "wait",
      artifact("report", " and half", { append: true }),
      "wait",
      completed("done"),
    ]);
    const { task } = await playWith(remote);
    const { state, text, artifacts } = await task.outcome();
    assert.equal(state, "TASK_STATE_COMPLETED");
    assert.equal(text, "half and half");
    assert.deepEqual(
      artifacts.map((of) => [of.id, of.text]),
      [["report", "half and half"]],
    );
    assert.equal(remote.executions.length, 1);
    assert.ok(told(task).includes("reading"));
  });

  test("the pauses double up to a minute, and begin anew with whatever is new", async () => {
    const quiet = Array.from({ length: 9 }, () => "wait" as const);
    const remote = new FakeRemote([...quiet, working("at it"), "wait", "wait", completed("done")]);
    const { task } = await playWith(remote);
    await task.outcome();
    const pauses = task.steps.filter(({ kind }) => kind === "sleep");
    assert.ok(pauses.length >= 11);
    assert.equal(remote.calls.filter((of) => of === "get").length, pauses.length);
  });

  test("the message's parts go along as they are, and the ids are ours", async () => {
    const remote = new FakeRemote([completed("done")]);
    const { task } = await playWith(remote, { contextId: "ctx-1" });
    await task.outcome();
    const [message] = remote.executions;
    assert.deepEqual(message, {
      messageId: `${task.id}-1`,
      contextId: "ctx-1",
      skill: "task",
      parts: [{ text: "do it" }],
      held: { mode: "autonomous", reviewer: "requester" },
    });
  });

  for (const state of ["FAILED", "REJECTED", "CANCELED"])
    test(`one that ends as ${state} fails our task, in its words`, async () => {
      const end: TaskState = `TASK_STATE_${state}` as TaskState;
      const remote = new FakeRemote([{ state: end, text: "no\u001b[2J way" }]);
      const { task } = await playWith(remote);
      const { state: ours, error } = await task.outcome();
      assert.equal(ours, "TASK_STATE_FAILED");
      assert.match(error?.message ?? "", new RegExp(`fake has ended the task as ${end}: no\\[2J way`));
      assert.deepEqual(remote.cancels, []);
    });

  test("looks that fail are repeated; a task that is gone ends ours at once", async () => {
    const remote = new FakeRemote(["wait", completed("done")]);
    remote.fails.push({ at: "get", error: failing("unreachable", false) });
    remote.fails.push({ at: "get", error: failing("timeout", true) });
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");

    const gone = new FakeRemote(["wait", completed("done")]);
    gone.fails.push({ at: "get", error: failing("not_found", true) });
    const { task: lost } = await playWith(gone);
    assert.match((await lost.outcome()).error?.message ?? "", /fails as not_found/);
    assert.equal(gone.calls.filter((of) => of === "get").length, 1);
  });

  test("nineteen looks in vain are not too many", async () => {
    const remote = new FakeRemote(["wait", completed("done")]);
    for (let n = 0; n < 19; n++) remote.fails.push({ at: "get", error: failing("unreachable", false) });
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
  });

  test("when it cannot be looked at for too long the task fails", async () => {
    const remote = new FakeRemote(["wait", completed("done")]);
    for (let n = 0; n < 20; n++) remote.fails.push({ at: "get", error: failing("unreachable", false) });
    const { task } = await playWith(remote);
    assert.match((await task.outcome()).error?.message ?? "", /fails as unreachable/);
    await task.skip("20m");
    assert.deepEqual(remote.cancels, ["remote-1"]);
  });
});

describe("a remote agent that has streams", () => {
  test("progress and artifacts come as they are told", async () => {
    const remote = new FakeRemote([
      working("one"),
      artifact("a b", "A"),
      artifact("a/b", "B", { name: "a b" }),
      artifact("grows", "1", { last: false, append: true }),
      artifact("grows", "2", { last: true, append: true }),
      { artifact: { id: "data", parts: [{ data: { n: 1 } }], append: false, last: true } },
      completed(),
    ]);
    remote.streams = true;
    const { task } = await playWith(remote);
    const { state, artifacts } = await task.outcome();
    assert.equal(state, "TASK_STATE_COMPLETED");
    assert.deepEqual(
      artifacts.map((of) => [of.id, of.text]),
      [
        ["a-b", "A"],
        ["a-b-2", "B"],
        ["grows", "12"],
        ["data-2", '{"n":1}'],
      ],
    );
    assert.equal(remote.calls.includes("get"), false);
  });

  test("a stream that ends before the task does is followed by looks", async () => {
    const remote = new FakeRemote([working("one"), "wait", artifact("a", "A"), completed("done")]);
    remote.streams = true;
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).text, "A");
    assert.equal(remote.executions.length, 1);
  });

  test("what is replaced is given out under another name", async () => {
    const remote = new FakeRemote([artifact("a", "old"), artifact("a", "new"), completed("done")]);
    remote.streams = true;
    const { task } = await playWith(remote);
    const { artifacts } = await task.outcome();
    assert.deepEqual(
      artifacts.map((of) => [of.id, of.text]),
      [
        ["a", "old"],
        ["a-2", "new"],
      ],
    );
  });
});

describe("questions", () => {
  for (const streams of [false, true])
    test(`what it asks goes to the requester, and the answer back (${streams ? "stream" : "looks"})`, async () => {
      const remote = new FakeRemote([
        asked("Which?"),
        working("so it is"),
        asked("Sure?"),
        completed("fine"),
      ]);
      remote.streams = streams;
      const { task } = await playWith(remote);
      await task.untilWaiting();
      assert.equal(task.question?.prompt, "Which?");
      await task.answer("the first");
      await task.untilWaiting();
      assert.equal(task.question?.prompt, "Sure?");
      await task.answer({ yes: true });
      assert.equal((await task.outcome()).text, "fine");
      assert.deepEqual(
        remote.executions.map(({ messageId, contextId, parts }) => [messageId, contextId, parts]),
        [
          [`${task.id}-1`, task.id, [{ text: "do it" }]],
          [`${task.id}-2`, task.id, [{ text: "the first" }]],
          [`${task.id}-3`, task.id, [{ data: { yes: true } }]],
        ],
      );
    });

  test("an authorization that is given goes on; one that is denied cancels the task there", async () => {
    const remote = new FakeRemote([authAsked("May I?"), completed("fine")]);
    const { task } = await playWith(remote);
    await task.untilWaiting();
    assert.equal(task.question?.kind, "approve");
    await task.approve();
    assert.equal((await task.outcome()).text, "fine");

    const denied = new FakeRemote([authAsked("May I?"), completed("fine")]);
    const { task: other } = await playWith(denied);
    await other.untilWaiting();
    await other.approve(false, "not now");
    assert.equal((await other.outcome()).error?.code, "auth_not_satisfied");
    assert.deepEqual(denied.cancels, ["remote-1"]);
    assert.equal(denied.executions.length, 1);
  });
});

describe("a message that may not have arrived", () => {
  test("one that certainly has not is sent again", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.listed = false;
    for (let n = 0; n < 6; n++) remote.fails.push({ at: "start", error: failing("unreachable", false) });
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.equal(remote.executions.length, 1);
    assert.equal(remote.calls.includes("find"), false);
  });

  for (const [failures, state] of [
    [9, "TASK_STATE_COMPLETED"],
    [10, "TASK_STATE_FAILED"],
  ] as const)
    test(`after ${failures} tries in vain the task is ${state}`, async () => {
      const remote = new FakeRemote([completed("done")]);
      for (let n = 0; n < failures; n++)
        remote.fails.push({ at: "start", error: failing("unreachable", false) });
      const { task } = await playWith(remote);
      assert.equal((await task.outcome()).state, state);
      assert.equal(remote.calls.filter((of) => of === "start").length, 10);
    });

  test("one that is nowhere to be found is sent again, as the same", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.fails.push({ at: "start", error: failing("lost", true) });
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.deepEqual(remote.calls.slice(0, 3), ["start", "find", "start"]);
    assert.deepEqual(
      remote.executions.map(({ messageId }) => messageId),
      [`${task.id}-1`],
    );
  });

  test("one that is found is not sent again", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.fails.push({ at: "start", error: failing("timeout", true), after: true });
    remote.fails.push({ at: "find", error: failing("unreachable", false) });
    const { task } = await playWith(remote);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.equal(remote.executions.length, 1);
  });

  test("where nobody can tell, the task fails and says why", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.listed = false;
    remote.fails.push({ at: "start", error: failing("timeout", true), after: true });
    const { task } = await playWith(remote);
    const { error } = await task.outcome();
    assert.match(
      error?.message ?? "",
      /may have the message, and cannot be asked whether it has: it is not sent/,
    );
    assert.equal(remote.executions.length, 1);
  });

  test("an answer is looked for by what the task asks", async () => {
    const remote = new FakeRemote([asked("Which?"), completed("fine")]);
    remote.listed = false;
    remote.fails.push({ at: "reply", error: failing("lost", true), after: true });
    const { task } = await playWith(remote);
    await task.untilWaiting();
    await task.answer("the first");
    assert.equal((await task.outcome()).text, "fine");
    assert.equal(remote.executions.length, 2);
  });

  test("one that the remote refuses is not sent again", async () => {
    const remote = new FakeRemote([completed("done")]);
    remote.fails.push({ at: "start", error: failing("refused", true) });
    const { task } = await playWith(remote);
    assert.match((await task.outcome()).error?.message ?? "", /fails as refused/);
    assert.deepEqual(remote.calls, ["start"]);
  });
});
