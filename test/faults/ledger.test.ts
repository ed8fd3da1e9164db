import assert from "node:assert/strict";
import { test } from "node:test";
import { type EventDraft, firstEvent, wireEvent } from "../../shared/events/drafts.ts";
import { addressOf } from "../../shared/events/publisher.ts";
import type { Entry, Head, StoredEvent } from "../../shared/tasks/items.ts";
import { taskIdOf } from "../../shared/wire/index.ts";
import { check } from "./run/checks/index.ts";
import type { EventRecord, Ledger, TaskRecord, Violation } from "./run/ledger.ts";

const FROM = "adam-lobby-1a2b3c4d";
const TO = "storm-worker";
const T0 = Date.UTC(2026, 7, 1);
const LEASE_MS = 3_000;

const messageId = "msg_1";
const taskId = taskIdOf(FROM, TO, messageId);
const head: Head = {
  taskId,
  messageId,
  from: FROM,
  to: TO,
  digest: "d",
  state: "TASK_STATE_COMPLETED",
  epoch: 2,
  beat: 3,
  published: 3,
  decidedAt: T0,
  deadline: T0 + 600_000,
  expiresAt: T0 / 1_000 + 86_400 * 30,
  skill: "task",
};

function stored(draft: EventDraft, revision: number): StoredEvent {
  const { kind, body } = wireEvent(head, draft, revision, T0 + revision);
  return { kind, revision, body: { text: body } };
}

const status = stored({ kind: "status", state: "TASK_STATE_WORKING", content: "half of it" }, 2);
const result = stored({ kind: "result", state: "TASK_STATE_COMPLETED", content: "done", metrics: {} }, 3);
const step = (name: string, run: string) => ({
  name,
  kind: "run" as const,
  value: { text: JSON.stringify({ run, pad: "" }) },
  ms: 1,
});
const entries: Entry[] = [
  { place: 1, nonce: "a", epoch: 1, at: T0, revision: 2, steps: [step("one", "run-1")], events: [status] },
  { place: 2, nonce: "b", epoch: 2, at: T0, revision: 2, claim: true },
  { place: 3, nonce: "c", epoch: 2, at: T0, revision: 2, steps: [step("two", "run-3")] },
  {
    place: 4,
    nonce: "d",
    epoch: 2,
    at: T0,
    revision: 3,
    events: [result],
    end: { state: "TASK_STATE_COMPLETED" },
  },
];

function onStream(event: StoredEvent, seq: number): EventRecord {
  const body = "text" in event.body ? event.body.text : "";
  return { seq, at: T0 + seq * 10, ...addressOf(head, event), body };
}

/** A task that two workers have worked on, and all is well. */
const clean: TaskRecord = {
  taskId,
  messageId,
  to: TO,
  what: "sequential",
  ends: ["COMPLETED"],
  mayWait: false,
  published: 1,
  onStream: true,
  controls: [],
  events: [firstEvent(head), status, result].map((event, index) => onStream(event, index + 1)),
  head,
  entries,
  bodies: {},
  stored: { one: "run-1", two: "run-3" },
  runs: [
    { step: "one", run: "run-1", pid: 11, at: T0 + 5 },
    { step: "two", run: "run-2", pid: 11, at: T0 + 15 },
    { step: "two", run: "run-3", pid: 12, at: T0 + 45 },
  ],
  claims: [
    { epoch: 1, pid: 11, at: T0 + 4 },
    { epoch: 2, pid: 12, at: T0 + 40 },
  ],
  confirmed: { 1: T0 + 10, 2: T0 + 42, 3: T0 + 50, 4: T0 + 60 },
  acked: [T0 + 12],
};

const SLOTS = { runtime: "storm-narrow", max: 2, mostLive: 2, live: [], queued: 0, inLine: false };

const ledgerOf = (task: Partial<TaskRecord>, of: Partial<Ledger> = {}): Ledger => ({
  tasks: [{ ...clean, ...task }],
  leaseMs: LEASE_MS,
  closedAt: T0 + 60_000,
  due: [],
  queues: { tasks: 0, work: 0 },
  consumers: { "a2a_tasks_storm-worker": 0 },
  dead: [],
  slots: [SLOTS],
  troubles: [{ whose: 11, what: "work killed", from: T0 + 20 }],
  changed: [],
  stuck: [],
  ...of,
});

/** Asserts that a ledger is found out, by an invariant of this name. */
function assertFound(invariant: Violation["invariant"], what: RegExp, ledger: Ledger): void {
  const { violations } = check(ledger);
  const named = violations.filter((violation) => violation.invariant === invariant);
  assert.ok(
    named.some((violation) => what.test(violation.what)),
    `expected ${invariant} ${what}, found ${JSON.stringify(violations, null, 1)}`,
  );
}

const without = <K extends keyof TaskRecord>(task: TaskRecord, key: K): Omit<TaskRecord, K> => {
  const { [key]: _, ...rest } = task;
  return rest;
};
const [accepted, working, done] = clean.events;
assert.ok(accepted !== undefined && working !== undefined && done !== undefined);

test("a ledger that is as it should be has no violation", () => {
  assert.deepEqual(check(ledgerOf({})), { violations: [], late: [] });
});

test("a lost task is found: never answered, or without an end", () => {
  const lost = { ...without(clean, "head"), events: [], entries: [], acked: [], runs: [], claims: [] };
  const ledger: Ledger = { ...ledgerOf({}), tasks: [lost] };
  assertFound("no-loss", /never answered/, ledger);
  assertFound("no-loss", /no end/, ledgerOf({ events: [accepted, working] }));
});

test("a task that nobody has given is not missed", () => {
  const never = { ...without(clean, "head"), published: 0, events: [], entries: [], acked: [], runs: [] };
  assert.deepEqual(check({ ...ledgerOf({}), tasks: [never] }).violations, []);
});

test("a doubled task is found: two ends, or a step that ran again", () => {
  const other = stored({ kind: "result", state: "TASK_STATE_FAILED", metrics: {} }, 4);
  assertFound(
    "one-end",
    /expected one end, got 2/,
    ledgerOf({ events: [...clean.events, onStream(other, 4)] }),
  );
  const again = { step: "one", run: "run-9", pid: 12, at: T0 + 46 };
  assertFound("once", /step one ran again 36 ms after/, ledgerOf({ runs: [...clean.runs, again] }));
  const twice = [...entries.slice(0, 2), { ...entries[0], place: 3, epoch: 2 } as Entry, ...entries.slice(3)];
  assertFound("once", /stored more than once/, ledgerOf({ entries: twice }));
  assertFound("once", /a run that never was/, ledgerOf({ stored: { one: "run-8", two: "run-3" } }));
});

test("a step is not held to have run again because two clocks differ by some milliseconds", () => {
  const drifted = clean.runs.map((run) => (run.run === "run-1" ? { ...run, at: run.at + 46 } : run));
  assert.deepEqual(check(ledgerOf({ runs: drifted })).violations, []);
  // An error does not tell which run it was.
  const failed = { ...step("one", "run-1"), error: { name: "Error", message: "no" } };
  const change = {
    entries: entries.map((entry) => (entry.place === 1 ? { ...entry, steps: [failed] } : entry)),
    stored: { ...clean.stored, one: null },
  };
  assert.deepEqual(check(ledgerOf({ ...change, runs: drifted })).violations, []);
  const again = { step: "one", run: "run-9", pid: 12, at: T0 + 90 };
  assertFound("once", /step one ran again/, ledgerOf({ ...change, runs: [...drifted, again] }));
});

test("a reordered task is found, and one with a gap", () => {
  assertFound(
    "revisions",
    /expected revision 2 next, got 3/,
    ledgerOf({ events: [accepted, done, working] }),
  );
  assertFound(
    "one-end",
    /1 events follow the end/,
    ledgerOf({
      events: [accepted, { ...done, seq: 2 }, { ...working, seq: 3 }],
    }),
  );
  assertFound("revisions", /expected revision 2 next, got 3/, ledgerOf({ events: [accepted, done] }));
});

test("a stuck task is found: due, unpublished, held, or slow to come to rest", () => {
  assertFound("settled", /over, and due/, ledgerOf({ head: { ...head, dueAt: T0 } }));
  assertFound("settled", /published is 2/, ledgerOf({ head: { ...head, published: 2 } }));
  assertFound(
    "settled",
    /its head is TASK_STATE_WORKING/,
    ledgerOf({ head: { ...head, state: "TASK_STATE_WORKING" } }),
  );
  assertFound("settled", /task_x is due/, ledgerOf({}, { due: ["task_x"] }));
  assertFound("no-loss", /did not come to rest/, ledgerOf({}, { stuck: [taskId] }));
});

test("an event repeated with the same bytes is none of the ledger's business, other bytes are found", () => {
  const again = { ...done, seq: 4, msgId: `${done.msgId}:cancel_1` };
  assert.deepEqual(check(ledgerOf({ events: [...clean.events, again] })).violations, []);
  const other = { ...again, body: done.body.replace("done", "dine") };
  assertFound(
    "same-answer",
    /revision 3 comes again with other bytes/,
    ledgerOf({ events: [...clean.events, other] }),
  );
});

test("an event that the journal does not hold is found, and a fold that differs", () => {
  const cut = entries.slice(0, 3);
  assertFound("committed-first", /does not hold 3 result/, ledgerOf({ entries: cut }));
  assertFound("fold", /by its journal TASK_STATE_WORKING/, ledgerOf({ entries: cut }));
  const other = { ...done, body: done.body.replace("done", "dine") };
  assertFound(
    "committed-first",
    /other bytes than the journal/,
    ledgerOf({ events: [accepted, working, other] }),
  );
});

test("what a worker does after its claim is lost is found", () => {
  const stale = entries.map((entry) => (entry.place === 3 ? { ...entry, epoch: 1 } : entry));
  assertFound("fence", /place 3 of epoch 1 follows a takeover of epoch 2/, ledgerOf({ entries: stale }));
  const after = [...entries, { ...entries[0], place: 5, epoch: 2, steps: [] } as Entry];
  assertFound("fence", /follows the end/, ledgerOf({ entries: after }));
  const gap = entries.filter(({ place }) => place !== 2);
  assertFound("fence", /expected place 2, got 3/, ledgerOf({ entries: gap }));
});

test("a run after its step was stored is excused only for a worker that could not know", () => {
  const runs = (at: number) => [...clean.runs, { step: "two", run: "run-4", pid: 11, at }];
  const thawed = [{ whose: 11, what: "work frozen", from: T0 + 20, to: T0 + 55 + LEASE_MS }];
  const soon = check(ledgerOf({ runs: runs(T0 + 55) }));
  assert.deepEqual(soon.violations, []);
  assert.match(soon.late[0]?.why ?? "", /15 ms before/);
  const late = T0 + 56 + LEASE_MS;
  const excused = check(ledgerOf({ runs: runs(late) }, { troubles: thawed }));
  assert.deepEqual(excused.violations, []);
  assert.match(excused.late[0]?.why ?? "", /work frozen/);
  assertFound("once", /step two ran again/, ledgerOf({ runs: runs(late) }, { troubles: [] }));
});

test("an acknowledgement before the answer is found", () => {
  assertFound("acked-after", /5 ms before its answer/, ledgerOf({ acked: [T0 + 5] }));
  assertFound("acked-after", /without an answer/, ledgerOf({ events: [] }));
});

test("an end that the task cannot come to is found; giving up is one only after five deaths", () => {
  assertFound("outcome", /expected FAILED internal, got COMPLETED/, ledgerOf({ ends: ["FAILED internal"] }));
  const message = 'the worker died 5 times in a row after step "one"';
  const failed = stored(
    { kind: "result", state: "TASK_STATE_FAILED", error: { code: "internal", message }, metrics: {} },
    3,
  );
  const events = [accepted, working, onStream(failed, 3)];
  const given: Entry[] = entries.map((entry) =>
    entry.place === 4
      ? { ...entry, events: [failed], end: { state: "TASK_STATE_FAILED", code: "internal" } }
      : entry,
  );
  const task = { events, entries: given, head: { ...head, state: "TASK_STATE_FAILED" as const } };
  assertFound("outcome", /got FAILED internal/, ledgerOf(task));
  const claims = [1, 2, 3, 4, 5, 6].map((epoch) => ({ epoch, pid: 10 + epoch, at: T0 + epoch }));
  const troubles = claims.slice(0, 5).map(({ pid, at }) => ({ whose: pid, what: "killed", from: at + 1 }));
  const { violations } = check(ledgerOf({ ...task, claims, head: { ...task.head, epoch: 6 } }, { troubles }));
  assert.deepEqual(violations, []);
});

test("a task may wait for a person, but not for one who has answered", () => {
  const asked = stored({ kind: "status", state: "TASK_STATE_INPUT_REQUIRED", content: "colour?" }, 2);
  const opens = [{ name: "colour", kind: "ask" as const, asked: 2 }];
  const task: Partial<TaskRecord> = {
    mayWait: true,
    ends: [],
    head: { ...head, state: "TASK_STATE_INPUT_REQUIRED", waiting: true, published: 2, epoch: 1, dueAt: T0 },
    entries: [{ place: 1, nonce: "a", epoch: 1, at: T0, revision: 2, opens, events: [asked] }],
    events: [accepted, onStream(asked, 2)],
    stored: {},
    runs: [],
  };
  assert.deepEqual(check(ledgerOf(task, { due: [taskId] })).violations, []);
  const reply = { kind: "input_reply", revision: 3, messageId: "m", good: true };
  assertFound("no-loss", /no end, and waits for nobody/, ledgerOf({ ...task, controls: [reply] }));
  const stale = { ...reply, revision: 2 };
  assert.deepEqual(check(ledgerOf({ ...task, controls: [stale] }, { due: [taskId] })).violations, []);
});

test("what is left in queues, consumers and dead letters is found unless it is explained", () => {
  assertFound("settled", /queue tasks holds 1/, ledgerOf({}, { queues: { tasks: 1 } }));
  assertFound("settled", /waits for 2 messages of c/, ledgerOf({}, { consumers: { c: 2 } }));
  assertFound("settled", /5 is gone/, ledgerOf({}, { changed: ["5 is gone"] }));
  const letter = { queue: "tasks-dead", taskId, body: "{}", buried: false };
  assertFound("settled", /a dead letter in tasks-dead/, ledgerOf({}, { dead: [letter] }));
  const explained = { ...letter, cause: "admit has died 7 times" };
  assert.deepEqual(check(ledgerOf({}, { dead: [explained] })).violations, []);
});

test("slots that are exceeded, or not given back, are found", () => {
  const slots = (of: Partial<typeof SLOTS>) => ledgerOf({}, { slots: [{ ...SLOTS, ...of }] });
  assertFound("slots", /3 tasks were worked on at once/, slots({ mostLive: 3 }));
  assertFound("slots", /task_x still hold slots/, ledgerOf({}, { slots: [{ ...SLOTS, live: ["task_x"] }] }));
  assertFound("slots", /1 tasks are counted as waiting/, slots({ queued: 1 }));
  assertFound("slots", /somebody stands in the line/, slots({ inLine: true }));
});
