import { errorCode, taskState } from "../wire/index.ts";
import * as z from "../zod.ts";

/**
 * The items of the table (docs/table.md). A task is a small head, written often, and a journal of immutable entries
 * `1, 2, 3…`, each put only if its place is free.
 */

// Each is built once, and by a start none.
const text = z.whenUsed(() => z.string());
const number = z.whenUsed(() => z.number());
const natural = z.whenUsed(() => z.int().check(z.nonnegative()));
const positive = z.whenUsed(() => z.int().check(z.positive()));
const optionalText = z.whenUsed(() => z.optional(text()));
const optionalNumber = z.whenUsed(() => z.optional(number()));
const optionalPositive = z.whenUsed(() => z.optional(positive()));
const optionalBoolean = z.whenUsed(() => z.optional(z.boolean()));

const eventKind = z.whenUsed(() => z.enum(["accepted", "rejected", "status", "artifact", "result"]));

/** A value that is too large for its item: an object in the bucket, under a key that contains its digest. */
export const valueRef = z.whenUsed(() => z.object({ key: text(), bytes: natural() }));
export type ValueRef = z.Used<typeof valueRef>;

/** Text kept in place, or by reference when it is large. */
export const kept = z.whenUsed(() => z.union([z.object({ text: text() }), z.object({ ref: valueRef() })]));
export type Kept = z.Used<typeof kept>;
const optionalKept = z.whenUsed(() => z.optional(kept()));

/** An event as it goes to the peer: its body's bytes are fixed when its entry is put. */
export const storedEvent = z.whenUsed(() =>
  z.object({
    kind: eventKind(),
    revision: positive(),
    body: kept(),
    /** For an artifact: its id, and the object that is copied to the peer's object store before the event is sent. */
    artifact: z.optional(
      z.object({ id: text(), key: text(), mediaType: text(), digest: text(), value: valueRef() }),
    ),
  }),
);
export type StoredEvent = z.Used<typeof storedEvent>;

const stepKind = z.whenUsed(() => z.enum(["run", "artifact", "sleep", "ask", "approve", "delegate"]));

/** An error as it is stored: what the handler gets again on each run. */
const storedError = z.whenUsed(() =>
  z.object({
    name: text(),
    message: text(),
    /** For a delegation: the code that its executor gave, or ours (docs/wire.md, error codes). */
    code: optionalText(),
  }),
);

/** A step that is done: its result as JSON text, or how it failed for good; known by the step's name. */
export const storedStep = z.whenUsed(() =>
  z.object({
    name: text(),
    kind: stepKind(),
    value: kept(),
    /** How long the step took, in milliseconds: from the first attempt on, pauses between attempts included. */
    ms: natural(),
    /** How many attempts it took, where it was more than one. */
    attempts: optionalPositive(),
    error: z.optional(storedError()),
  }),
);
export type StoredStep = z.Used<typeof storedStep>;

/** A task that one of our agents has given to another agent. */
const child = z.whenUsed(() =>
  z.object({
    /** The executor. */
    to: text(),
    channelRef: text(),
    skill: text(),
    /** Of the message that asks for it; it tells the parent task (shared/tasks/delegation.ts). */
    messageId: text(),
    /** How long the executor may take, in seconds. */
    timeoutSec: positive(),
    /** How many times the executor may hand the work on. */
    depth: natural(),
    /** Whether the handler wants to hear of its progress. */
    progress: optionalBoolean(),
    /** How often the work has been handed on, this time included. */
    hops: optionalPositive(),
    /** It was chosen for its skill, and not named: how it ends counts (docs/choosing.md, weight). */
    bySkill: optionalBoolean(),
  }),
);
export type Child = z.Used<typeof child>;

/** What a step waits for. Opening the same step again replaces what it waited for before. */
export const openedStep = z.whenUsed(() =>
  z.object({
    name: text(),
    kind: stepKind(),
    /** When the waiting is over at the latest, in milliseconds since 1970. */
    until: optionalNumber(),
    /** For a question: the revision of the event that asked. */
    asked: optionalPositive(),
    /** For a question that only the operator may answer. */
    by: z.optional(z.literal("operator")),
    /** For a delegation: what was handed on. */
    child: z.optional(child()),
    /** For a `run` between two attempts: when the first began, how many have failed, and the last one's error. */
    began: optionalNumber(),
    attempts: optionalPositive(),
    error: z.optional(storedError()),
  }),
);
export type OpenedStep = z.Used<typeof openedStep>;

/** What a control has brought for the question that was open. */
export const answer = z.whenUsed(() =>
  z.object({
    /** The step that asked. */
    step: text(),
    /** JSON text: for `ask` the control's `a2a`, for `approve` `{ approve, denyReason? }`. */
    value: kept(),
  }),
);
export type Answer = z.Used<typeof answer>;

/** What the executor of a delegated task has told, by one of its events. */
export const heard = z.whenUsed(() =>
  z.object({
    /** The step that has delegated. */
    step: text(),
    /** The executor's revision: its events are applied in this order, each once. */
    revision: positive(),
    /** The task's id at its executor. */
    taskId: optionalText(),
    /** A text about the progress. */
    text: optionalKept(),
    /** For an artifact: its reference as JSON text. */
    artifact: optionalKept(),
    /** For the end: `{ state, text, artifacts, metrics, error }` as JSON text. */
    outcome: optionalKept(),
  }),
);
export type Heard = z.Used<typeof heard>;

/** One place of a task's journal. */
export const entry = z.whenUsed(() =>
  z.object({
    place: positive(),
    /** Whoever put the entry knows it again by this: a place taken by one's own nonce is one's own retried write. */
    nonce: text(),
    /** The claim under which it was put; what a control puts carries the epoch it saw. */
    epoch: natural(),
    /** Milliseconds since 1970. */
    at: number(),
    /** The revision of the last event up to and with this entry. */
    revision: positive(),
    /** A takeover: whoever holds an earlier epoch has lost the task from here on. */
    claim: optionalBoolean(),
    steps: z.optional(z.array(storedStep())),
    opens: z.optional(z.array(openedStep())),
    answer: z.optional(answer()),
    heard: z.optional(heard()),
    events: z.optional(z.array(storedEvent())),
    /** The control that caused the entry. */
    control: z.optional(z.object({ kind: text(), messageId: text(), revision: z.int() })),
    /** Nothing follows an entry with an end. */
    end: z.optional(z.object({ state: taskState(), code: z.optional(errorCode()), message: optionalText() })),
  }),
);
export type Entry = z.Used<typeof entry>;

/** The head: who, what, and how far. At most about 1 KB, for it is written often. */
export const head = z.whenUsed(() =>
  z.object({
    taskId: text(),
    messageId: text(),
    from: text(),
    to: text(),
    /** SHA-256 of the message's body, in hex: tells a repeated message from another one under the same id. */
    digest: text(),
    state: taskState(),
    /** How often the task has been claimed. */
    epoch: natural(),
    /** Raised by the worker that holds the claim while it lives. */
    beat: natural(),
    /** The nonce of the claim in force. */
    owner: optionalText(),
    /** The last revision that is known to be published. */
    published: natural(),
    /** When the message entered its stream, in milliseconds since 1970. */
    storedAt: optionalNumber(),
    /** When the decision was made, in milliseconds since 1970; the `createdAt` of `accepted` or `rejected`. */
    decidedAt: number(),
    /** When the task is over at the latest, in milliseconds since 1970. */
    deadline: number(),
    /** When the items may be deleted, in seconds since 1970 (DynamoDB, Time to Live). */
    expiresAt: number(),
    skill: optionalText(),
    /** How many times the work may be handed on. */
    depth: z.optional(natural()),
    clientTaskRef: optionalText(),
    traceparent: optionalText(),
    /** The task's payload as JSON text: in place, in an item of its own, or in the bucket. */
    input: z.optional(z.union([kept(), z.object({ item: z.literal(true) })])),
    /** Why the task was rejected. */
    reject: z.optional(z.object({ code: errorCode(), message: text() })),
    /** The step that a worker which has taken over is about to run: if it dies there, we can say where. */
    running: optionalText(),
    /** Nobody works on the task: its last worker has left it in good order, to be woken by a time or an answer. */
    waiting: optionalBoolean(),
    /** The epoch of the last worker that has left the task in good order: claims up to it have not died. */
    calm: z.optional(z.int()),
    /** The task holds one of its agent's slots (shared/tasks/slots.ts). */
    slot: optionalBoolean(),
    /** Its place in the line for one. */
    queued: optionalText(),
    /** The last place at which somebody has put what a worker should know: who has not read that far does not leave. */
    news: optionalPositive(),
    /** Its operator has erased what it was about: when, in milliseconds since 1970, and who. */
    erased: z.optional(z.object({ at: number(), by: text() })),
    /** When somebody must look at the task again, in milliseconds since 1970; absent when nobody need. */
    dueAt: optionalNumber(),
    /** What `sweep` saw when it last looked, and how often in a row it saw the same. */
    seen: z.optional(z.object({ epoch: z.int(), beat: z.int(), times: z.int() })),
  }),
);
export type Head = z.Used<typeof head>;

/** The sort key of a task's head. */
export const HEAD_KEY = "head";
/** The sort key of a payload that is too large for the head and small enough for an item. */
export const INPUT_KEY = "input";

/** The sort key of the item that tells whose child a task is. */
export const CHILD_KEY = "child";

/** The partition key of that item: an executor's task ids are its own, and other executors may have the same. */
export function childKey(of: {
  readonly delegator: string;
  readonly executor: string;
  readonly childTaskId: string;
}): string {
  return `child#${of.delegator}#${of.executor}#${of.childTaskId}`;
}

/** That item: the task that has delegated, and the step. */
export const parent = z.whenUsed(() => z.object({ taskId: text(), step: text() }));

const PLACE_DIGITS = 10;

/** The sort key of a journal entry: places sort as numbers do. */
export function entryKey(place: number): string {
  return `e#${String(place).padStart(PLACE_DIGITS, "0")}`;
}

const SHARDS = 8;

/** The partitions of the index over `dueAt`, so that no single one takes every write. */
export const dueShards: readonly string[] = Array.from({ length: SHARDS }, (_, shard) => `due#${shard}`);

/** The partition of a task: by the last digits of its id, which are a digest's. */
export function dueShard(taskId: string): string {
  const last = Number.parseInt(taskId.slice(-4), 16);
  return `due#${Number.isNaN(last) ? 0 : last % SHARDS}`;
}
