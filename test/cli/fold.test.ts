import assert from "node:assert/strict";
import { test } from "node:test";
import type { Seen } from "../../cli/events.ts";
import { foldTask, foldTasks } from "../../cli/fold.ts";
import { unanswered } from "../../cli/unanswered.ts";
import { type TaskEvent, taskIdOf, taskSubject } from "../../shared/wire/index.ts";

let clock = 0;
function seen(event: Partial<TaskEvent>): Seen {
  const base: TaskEvent = {
    kind: "status",
    from: "acme-echo",
    to: "acme-cli",
    taskKey: "task_1",
    messageId: "m1",
    revision: 1,
    state: "TASK_STATE_WORKING",
    content: "",
    error: null,
  };
  return { event: { ...base, ...event }, at: new Date(++clock) };
}
const accepted = () => seen({ kind: "accepted" });
const artifact = (id: string) => ({
  id,
  name: id,
  mediaType: "text/plain",
  digest: "",
  sizeBytes: 1,
  uri: "",
  bucket: "",
  key: "",
});

test("states follow the revisions; equal and lower ones change nothing", () => {
  const view = foldTask([
    accepted(),
    seen({ revision: 3, content: "three" }),
    seen({ revision: 2, content: "two", state: "TASK_STATE_INPUT_REQUIRED" }),
    accepted(),
  ]);
  assert.equal(view?.state, "TASK_STATE_WORKING");
  assert.equal(view?.content, "three");
  assert.equal(view?.revision, 3);
});

test("nothing follows the end, though artifacts are still noted", () => {
  const view = foldTask([
    accepted(),
    seen({ revision: 2, state: "TASK_STATE_CANCELED" }),
    seen({
      kind: "result",
      revision: 3,
      state: "TASK_STATE_COMPLETED",
      result: { artifacts: [artifact("late")], metrics: {} },
    }),
  ]);
  assert.equal(view?.state, "TASK_STATE_CANCELED");
  assert.equal(view?.revision, 2);
  assert.deepEqual(
    view?.artifacts.map(({ id }) => id),
    ["late"],
  );
});

test("an end counts although an artifact came with a higher revision", () => {
  const view = foldTask([
    accepted(),
    seen({ kind: "artifact", revision: 3, artifact: artifact("a") }),
    seen({ kind: "result", revision: 2, state: "TASK_STATE_COMPLETED", content: "done" }),
  ]);
  assert.deepEqual([view?.state, view?.revision, view?.content], ["TASK_STATE_COMPLETED", 3, "done"]);
});

test("of an artifact that grows the last version is shown, whatever is repeated", () => {
  const version = (revision: number) =>
    seen({ kind: "artifact", revision, artifact: { ...artifact("a"), sizeBytes: revision } });
  const listed = (...events: Seen[]) =>
    foldTask([accepted(), ...events])?.artifacts.map(({ id, sizeBytes }) => [id, sizeBytes]);
  assert.deepEqual(listed(version(2), version(3)), [["a", 3]]);
  assert.deepEqual(listed(version(2), version(3), version(2)), [["a", 3]]);
  const result = { artifacts: [{ ...artifact("a"), sizeBytes: 4 }], metrics: {} };
  const end = seen({ kind: "result", revision: 5, state: "TASK_STATE_COMPLETED", result });
  assert.deepEqual(listed(version(2), end, version(2)), [["a", 4]]);
});

test("that a task asks the operator is known while it does", () => {
  const state = "TASK_STATE_AUTH_REQUIRED";
  const asks = [accepted(), seen({ revision: 2, state, data: { by: "operator" } })];
  const by = (...more: Seen[]) => foldTask([...asks, ...more])?.by;
  assert.equal(by(), "operator");
  assert.equal(by(seen({ kind: "artifact", revision: 3, state, artifact: artifact("a") })), "operator");
  assert.equal(by(seen({ kind: "artifact", revision: 3, artifact: artifact("a") })), undefined);
  assert.equal(by(seen({ revision: 3, state })), undefined);
  assert.equal(by(seen({ revision: 3, data: { by: "operator" } })), undefined);
});

test("tasks are told apart by executor, delegator and id, the last changed last", () => {
  const one = accepted();
  const views = foldTasks([one, seen({ taskKey: "task_2" }), seen({ from: "evil" }), seen({ revision: 2 })]);
  assert.deepEqual(
    views.map(({ task, executor, revision }) => [task, executor, revision]),
    [
      ["task_2", "acme-echo", 1],
      ["task_1", "evil", 1],
      ["task_1", "acme-echo", 2],
    ],
  );
  assert.equal(foldTask([]), null);
});

test("a task is unanswered while no event names its id, its message or its rejection", () => {
  const ids = ["m1", "m2", "m3", "m4"];
  const sent = ids.map((id) => ({ subject: taskSubject("acme-cli", "acme-echo", id), at: new Date(0) }));
  const known = [
    seen({ kind: "accepted", messageId: "m1", taskKey: "own-id" }),
    seen({ kind: "rejected", messageId: "m2", taskKey: "msg_m2" }),
    seen({ kind: "result", messageId: "x", taskKey: taskIdOf("acme-cli", "acme-echo", "m3") }),
  ];
  const open = unanswered([...sent, { subject: "a2a.v1.task.bad", at: new Date(0) }], known);
  assert.deepEqual(
    open.map(({ task }) => task),
    [taskIdOf("acme-cli", "acme-echo", "m4")],
  );
});
