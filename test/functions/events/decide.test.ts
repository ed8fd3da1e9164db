import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type Decision, decide, MAX_REF_BYTES } from "../../../functions/events/decide.ts";
import { childMessageId, outcome } from "../../../shared/tasks/delegation.ts";
import { fold } from "../../../shared/tasks/fold.ts";
import type { Entry } from "../../../shared/tasks/items.ts";
import { isTerminal, type TaskEvent, type TaskState } from "../../../shared/wire/index.ts";

const MESSAGE = childMessageId("task_0123456789abcdef01234567", "bob");
const BOB = "acme-bob";
const CHILD = {
  to: BOB,
  channelRef: "bob",
  skill: "task",
  messageId: MESSAGE,
  timeoutSec: 60,
  depth: 0,
  progress: true,
};

/** A journal that grows as the store's would. */
class Log {
  readonly entries: Entry[] = [];

  constructor(child: typeof CHILD = CHILD) {
    this.put({ opens: [{ name: "bob", kind: "delegate", child }] });
  }

  put(parts: Partial<Entry>): void {
    const place = this.entries.length + 1;
    this.entries.push({ place, nonce: "n", epoch: 1, at: 0, revision: 1, ...parts });
  }

  /** Decides an event, and puts what it tells. */
  hear(event: TaskEvent, at: number): Decision {
    const decision = decide(this.entries, event, { at, step: stepOf(event) });
    if (decision.kind !== "put" || decision.heard === undefined) return decision;
    const { text, artifact, outcome, ...heard } = decision.heard;
    const kept = { text, artifact, outcome };
    const given = Object.entries(kept).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, { text: value }]],
    );
    this.put({ at, heard: { ...heard, ...Object.fromEntries(given) } });
    return decision;
  }

  get told() {
    return fold(this.entries).heard.get("bob");
  }
}

/** The binding finds what does not name the message. */
function stepOf({ messageId }: TaskEvent): string | undefined {
  return messageId === MESSAGE ? undefined : "bob";
}

function eventOf(kind: TaskEvent["kind"], over: Partial<TaskEvent> = {}): TaskEvent {
  const rejected = kind === "rejected";
  const named = kind === "accepted" || kind === "result" || rejected;
  const states: Partial<Record<TaskEvent["kind"], TaskState>> = {
    rejected: "TASK_STATE_REJECTED",
    result: "TASK_STATE_COMPLETED",
  };
  return {
    kind,
    from: BOB,
    to: "acme-ann",
    taskKey: rejected ? `msg_${MESSAGE}` : "task_b",
    ...(!rejected && { taskId: "task_b" }),
    messageId: named ? MESSAGE : "task_b_status",
    revision: 1,
    state: states[kind] ?? "TASK_STATE_WORKING",
    content: "",
    error: null,
    ...over,
  };
}
const accepted = eventOf("accepted");
const result = eventOf("result", { revision: 4, content: "done" });
const status = (revision: number, content = `at ${revision}`) => eventOf("status", { revision, content });
const question = eventOf("status", { revision: 2, state: "TASK_STATE_INPUT_REQUIRED", content: "Which?" });
const refused = (decision: Decision) => (decision.kind === "refuse" ? decision.reason : decision.kind);

describe("an event", () => {
  test("of another executor, task or message, or under a wrong key, is refused", () => {
    const log = new Log();
    assert.match(
      refused(log.hear(eventOf("accepted", { from: "acme-eve" }), 1)),
      /^expected an event of acme-bob/,
    );
    assert.match(refused(log.hear(eventOf("accepted", { messageId: "msg_1" }), 1)), /^put$/);
    const fresh = new Log();
    assert.equal(
      refused(decide(fresh.entries, eventOf("accepted", { messageId: "msg_1" }), { at: 1 })),
      "no such delegation",
    );
    assert.equal(refused(decide([], accepted, { at: 1 })), "no such delegation");
    assert.match(
      refused(fresh.hear(eventOf("accepted", { taskKey: `msg_${MESSAGE}` }), 1)),
      /task's id as its key/,
    );
    assert.match(
      refused(fresh.hear(eventOf("rejected", { taskKey: "task_b" }), 1)),
      /the key of the message/,
    );
    fresh.hear(accepted, 1);
    assert.match(
      refused(fresh.hear(eventOf("result", { taskId: "x", taskKey: "x" }), 2)),
      /under which the task/,
    );
    assert.match(refused(fresh.hear(eventOf("rejected"), 2)), /has been accepted/);
  });

  test("accepted tells the task's id, once", () => {
    const log = new Log();
    assert.deepEqual(log.hear(accepted, 1), {
      kind: "put",
      step: "bob",
      heard: { step: "bob", revision: 1, taskId: "task_b" },
    });
    assert.deepEqual(log.hear(accepted, 2), { kind: "known", step: "bob" });
  });

  test("without a revision counts as the first", () => {
    const decision = new Log().hear(eventOf("accepted", { revision: 0 }), 1);
    assert.equal(decision.kind === "put" && decision.heard?.revision, 1);
  });

  test("rejected is an end", () => {
    const log = new Log();
    log.hear(eventOf("rejected", { error: { code: "x".repeat(200), message: "no" } }), 1);
    const told = outcome().parse(JSON.parse(textOf(log)));
    assert.deepEqual(
      [told.state, told.error?.code.length, told.error?.message],
      ["TASK_STATE_REJECTED", 100, "no"],
    );
  });

  test("of progress is put where it is wanted, newer, and not too soon", () => {
    const log = new Log();
    const kinds = (...decisions: Decision[]) => decisions.map(({ kind }) => kind);
    assert.deepEqual(
      kinds(
        log.hear(accepted, 1_000),
        log.hear(status(3), 1_000),
        log.hear(status(2), 5_000),
        log.hear(status(4), 1_999),
        log.hear(status(4, ""), 2_000),
        log.hear(status(4), 2_000),
        // After 1,000 s, ten seconds lie between two.
        log.hear(status(5), 1_000_000),
        log.hear(status(6), 1_009_999),
        log.hear(status(6), 1_011_000),
      ),
      ["put", "put", "known", "known", "known", "put", "put", "known", "put"],
    );
    const { progress: _, ...silent } = CHILD;
    assert.equal(new Log({ ...silent, progress: false }).hear(status(3), 1_000).kind, "known");
    const long = new Log();
    long.hear(status(2, "x".repeat(3_000)), 1_000);
    assert.deepEqual(long.told?.text?.kept, { text: "x".repeat(2_000) });
  });

  test("that asks is an end, and the executor is to stop, however often it comes", () => {
    const log = new Log();
    log.hear(accepted, 1);
    for (const kind of ["put", "known"]) {
      const decision = log.hear(question, 2);
      assert.equal(decision.kind, kind);
      assert.match((decision.kind !== "refuse" && decision.cancel) || "", /questions/);
    }
    assert.deepEqual(log.hear(eventOf("status", { revision: 5, state: "TASK_STATE_CANCELED" }), 3), {
      kind: "known",
      step: "bob",
    });
  });

  test("accepted for a step that is over tells the executor to stop; what ends needs nothing", () => {
    const over: Partial<Entry>[] = [
      { end: { state: "TASK_STATE_CANCELED" } },
      { steps: [{ name: "bob", kind: "delegate", value: { text: "" }, ms: 1 }] },
    ];
    for (const parts of over) {
      const log = new Log();
      log.put(parts);
      const decision = log.hear(accepted, 1);
      assert.ok(decision.kind === "known" && decision.cancel !== undefined);
      assert.deepEqual(log.hear(result, 1), { kind: "known", step: "bob" });
      assert.deepEqual(log.hear(status(2), 1), { kind: "known", step: "bob" });
      assert.match(refused(log.hear(eventOf("accepted", { from: "acme-eve" }), 1)), /^expected an event of/);
    }
    const done = new Log();
    done.hear(result, 1);
    assert.deepEqual(done.hear(accepted, 1), { kind: "known", step: "bob" });
  });

  test("accepted after rejected tells the executor to stop: nobody waits for it", () => {
    const log = new Log();
    log.hear(eventOf("rejected"), 1);
    for (const _ of [1, 2]) {
      const decision = log.hear(accepted, 2);
      assert.ok(decision.kind === "known" && decision.cancel !== undefined);
    }
  });
});

test("an artifact is put once, and only if its reference is of a size that references have", () => {
  const log = new Log();
  const artifact = (name: string) => ({
    id: "a",
    name,
    mediaType: "text/plain",
    digest: `sha256:${"0".repeat(64)}`,
    sizeBytes: 1,
    uri: "u",
    bucket: "a2a-artifacts",
    key: "tasks/task_b/a/a",
  });
  const room = MAX_REF_BYTES - JSON.stringify(artifact("")).length;
  const hear = (revision: number, length: number) =>
    log.hear(eventOf("artifact", { revision, artifact: artifact("x".repeat(length)) }), 1).kind;
  assert.deepEqual([hear(2, room), hear(2, room), hear(3, room + 1)], ["put", "known", "known"]);
});

function textOf(log: Log): string {
  const kept = log.told?.outcome;
  assert.ok(kept !== undefined && "text" in kept);
  return kept.text;
}

test("whatever comes in whatever order, and however often: the first end holds, and nothing is put twice", () => {
  const artifact = {
    id: "a",
    name: "a",
    mediaType: "text/plain",
    digest: `sha256:${"0".repeat(64)}`,
    sizeBytes: 1,
    uri: "u",
    bucket: "a2a-artifacts",
    key: "tasks/task_b/a/a",
  };
  const revision = fc.oneof(fc.integer({ min: 0, max: 8 }), fc.constant(Number.MAX_SAFE_INTEGER));
  const any: fc.Arbitrary<TaskEvent> = fc.oneof(
    revision.map((revision) => eventOf("accepted", { revision })),
    revision.map((revision) => status(revision)),
    revision.map((revision) => eventOf("artifact", { revision, artifact })),
    revision.map((revision) => eventOf("result", { revision, content: `end ${revision}` })),
    revision.map((revision) => eventOf("status", { revision, state: "TASK_STATE_FAILED" })),
    fc.constant(question),
    fc.constant(eventOf("rejected")),
    revision.map((revision) => eventOf("result", { revision, from: "acme-eve" })),
    revision.map((revision) => eventOf("status", { revision, taskId: "task_x", taskKey: "task_x" })),
  );
  fc.assert(
    fc.property(fc.array(any, { maxLength: 30 }), fc.nat({ max: 30 }), (sequence, endsAt) => {
      const log = new Log();
      let first: string | undefined;
      sequence.forEach((event, n) => {
        if (n === endsAt) log.put({ end: { state: "TASK_STATE_COMPLETED" } });
        const before = log.entries.length;
        const decision = log.hear(event, n * 60_000);
        if (event.from !== BOB) assert.equal(decision.kind, "refuse");
        if (decision.kind === "refuse") return;
        if (n >= endsAt) assert.equal(log.entries.length, Math.max(before, 1), "nothing follows the end");
        // The same event once more changes nothing.
        const size = log.entries.length;
        assert.equal(log.hear(event, n * 60_000 + 30_000).kind, "known");
        assert.equal(log.entries.length, size);
        const told = log.told;
        if (told?.outcome !== undefined) {
          first ??= textOf(log);
          assert.equal(textOf(log), first);
        }
        const ends = event.kind === "result" || isTerminal(event.state) || event.state.endsWith("_REQUIRED");
        if (ends && n < endsAt) assert.ok(told?.outcome !== undefined);
      });
      const heard = log.entries.flatMap((entry) => entry.heard ?? []);
      assert.ok(heard.filter(({ outcome }) => outcome !== undefined).length <= 1);
    }),
    { numRuns: 300 },
  );
});
