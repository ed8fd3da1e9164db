import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cancelMessage, childMessageId, openChildren, parentTaskId } from "../../shared/tasks/delegation.ts";
import { fold } from "../../shared/tasks/fold.ts";
import type { Entry } from "../../shared/tasks/items.ts";
import { messageId, readControl, readEnvelope, taskIdOf } from "../../shared/wire/index.ts";

const PARENT = taskIdOf("adam", "acme-ann", "msg_1");
const child = (step: string) => ({
  to: "acme-bob",
  channelRef: "bob",
  skill: "task",
  messageId: childMessageId(PARENT, step),
  timeoutSec: 60,
  depth: 0,
});
const entry = (place: number, parts: Partial<Entry>): Entry => ({
  place,
  nonce: `n${place}`,
  epoch: 1,
  at: place,
  revision: 1,
  ...parts,
});
const open = (name: string) => ({ name, kind: "delegate" as const, child: child(name) });

test("the message of a step tells its task, and no two steps share one", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (one, other) => {
      const id = childMessageId(PARENT, one);
      assert.ok(id.length <= 92 && messageId().safeParse(id).success, id);
      assert.equal(parentTaskId(id), PARENT);
      assert.equal(id === childMessageId(PARENT, other), one === other);
    }),
  );
  for (const none of [
    "",
    "msg_1",
    "dlg_1_2",
    `${childMessageId(PARENT, "a")}0`,
    `x${childMessageId(PARENT, "a")}`,
  ])
    assert.equal(parentTaskId(none), undefined, none);
});

test("open are those that nothing has put an end to", () => {
  const view = fold([
    entry(1, {
      opens: [open("waits"), open("done"), open("late"), { name: "nap", kind: "sleep", until: 9 }],
    }),
    entry(2, { heard: { step: "done", revision: 2, outcome: { text: "{}" } } }),
    entry(3, { steps: [{ name: "late", kind: "delegate", value: { text: "" }, ms: 1 }] }),
    entry(4, { heard: { step: "waits", revision: 1, taskId: "task_b" } }),
    entry(5, { heard: { step: "late", revision: 1, taskId: "task_c" } }),
  ]);
  assert.deepEqual(
    openChildren(view).map(({ step, told }) => [step, told?.taskId]),
    [["waits", "task_b"]],
  );
  assert.equal(view.heard.has("late"), false);
});

test("only an end brings the parent further", () => {
  const before = [entry(1, { opens: [open("a")] }), entry(2, { claim: true, epoch: 2 })];
  const told = entry(3, { heard: { step: "a", revision: 2, text: { text: "hm" } } });
  assert.deepEqual(fold([...before, told]).claims, [2]);
  const ended = entry(3, { heard: { step: "a", revision: 2, outcome: { text: "{}" } } });
  assert.deepEqual(fold([...before, ended]).claims, []);
});

test("what is told adds up, and the first end stays", () => {
  const heard = (place: number, parts: Partial<NonNullable<Entry["heard"]>>) =>
    entry(place, { heard: { step: "a", revision: place, ...parts } });
  const kept = (text: string) => ({ text });
  const told = fold([
    entry(1, { opens: [open("a")] }),
    heard(5, { taskId: "task_b" }),
    heard(3, { text: kept("text"), taskId: "task_c" }),
    heard(4, { artifact: kept("one") }),
    heard(2, { outcome: kept("first") }),
    heard(6, { outcome: kept("second") }),
  ]).heard.get("a");
  assert.deepEqual(told, {
    revision: 6,
    at: 6,
    taskId: "task_b",
    text: { kept: kept("text"), revision: 3, at: 3 },
    artifacts: new Map([[4, kept("one")]]),
    outcome: kept("first"),
  });
});

test("a cancel is one that the executor reads, however far it counts", () => {
  for (const [seen, revision] of [
    [1, 2],
    [Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ] as const) {
    const head = { taskId: PARENT, to: "acme-ann" };
    const to = { to: "acme-bob", taskId: "t".repeat(96) };
    const message = cancelMessage(head, to, { revision: seen, at: 1_000 }, "why");
    assert.deepEqual(message, cancelMessage(head, to, { revision: seen, at: 1_000 }, "why"));
    const read = readEnvelope(message.subject, Buffer.from(message.body), 2_000);
    assert.ok(read.ok && read.value.subject.kind === "control", JSON.stringify(read));
    const control = readControl(read.value.envelope, read.value.subject);
    assert.deepEqual([control.kind, control.revision, control.reason], ["cancel", revision, "why"]);
  }
});
