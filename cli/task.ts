import { randomBytes } from "node:crypto";
import { JetStreamApiCodes, JetStreamApiError, jetstream } from "@nats-io/jetstream";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import { isTerminal, type TaskEvent, taskIdOf, taskMessage } from "../shared/wire/index.ts";
import { CliError, EXIT, TimedOut } from "./errors.ts";
import { eventsOf, type Feed, openEvents } from "./events.ts";

/** What to say to an agent: a text, JSON, or both as parts of one message. */
export type Words =
  | string
  | { readonly parts: readonly ({ readonly text: string } | { readonly data: unknown })[] };

/** A task to send. */
export interface Order {
  /** The runtime as which we send. */
  readonly from: string;
  /** The runtime that shall do it. */
  readonly to: string;
  readonly channelRef: string;
  /** A skill's slug, or `<channelRef>/<slug>`. */
  readonly skill: string;
  readonly message: Words;
  /** How many times the executor may hand the work on; none unless it is said. */
  readonly depth?: number;
  /** Seconds that the executor is given, whole and positive; absent means its own default. */
  readonly timeoutSec?: number;
  /** The message's id, if it is to be published once and never again; otherwise a new one. */
  readonly onceAs?: string;
}

/** The message that was to be published once is on the stream already. */
export class SentBefore extends Error {
  override readonly name = "SentBefore";
}

/** A task that is on the stream. */
export interface Sent {
  readonly messageId: string;
  /** The id that the task gets when it is accepted. */
  readonly taskId: string;
}

const SUMMARY_LENGTH = 120;
const PUBLISH_TIMEOUT_MS = 5_000;
const PUBLISH_ATTEMPTS = 3;
/** A new id for a message. */
export function newMessageId(): string {
  return `msg_${randomBytes(12).toString("hex")}`;
}

/** What a stream says of a message larger than it takes; not among the client's named codes. */
const MESSAGE_TOO_LARGE = 10054;

/**
 * Publishes a task as a peer does, and waits until the stream has it. Trying again is safe: the message's id makes it
 * one (docs/wire.md, `Nats-Msg-Id`).
 *
 * @throws CliError `usage` when the message is larger than the server takes
 * @throws SentBefore
 */
export async function sendTask(nc: NatsConnection, order: Order): Promise<Sent> {
  const { from, to, channelRef, skill, message, timeoutSec, depth, onceAs } = order;
  const messageId = onceAs ?? newMessageId();
  const outgoing = taskMessage({
    from,
    to,
    messageId,
    request: {
      a2a: typeof message === "string" ? { kind: "text", text: message } : { message },
      channelRef,
      skillId: skill.includes("/") ? skill : `${channelRef}/${skill}`,
      userVisibleSummary: summaryOf(message),
      delivery: {
        ...(timeoutSec !== undefined && { timeoutSec }),
        ...(depth !== undefined && { maxDelegationDepth: depth }),
      },
    },
    createdAt: new Date().toISOString(),
  });
  await publish(nc, outgoing, onceAs === undefined ? {} : { once: true });
  return { messageId, taskId: taskIdOf(from, to, messageId) };
}

/**
 * Publishes a message with its `Nats-Msg-Id` and waits for the stream's word that it is stored.
 *
 * @param how.once only if its subject, which is the message's alone, has none yet: of several who do so at the same
 *   time the server lets one (NATS docs: JetStream headers, `Nats-Expected-Last-Subject-Sequence`)
 * @returns whether the stream had it already
 * @throws SentBefore with `how.once`, when it had
 */
export async function publish(
  nc: NatsConnection,
  outgoing: { readonly subject: string; readonly msgId: string; readonly body: string },
  how: { readonly once?: boolean } = {},
): Promise<boolean> {
  const { subject, msgId, body } = outgoing;
  const { once = false } = how;
  const size = Buffer.byteLength(body);
  const limit = nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
  if (size > limit)
    throw new CliError(
      EXIT.usage,
      `the message has ${size} bytes as encoded; the server takes ${limit}; send less`,
    );
  for (let attempt = 1; ; attempt++)
    try {
      const options = { msgID: msgId, timeout: PUBLISH_TIMEOUT_MS };
      const { duplicate } = await jetstream(nc).publish(subject, body, {
        ...options,
        ...(once && { expect: { lastSubjectSequence: 0 } }),
      });
      // Of a later attempt it is our own, whose answer was lost.
      if (once && duplicate && attempt === 1) throw new SentBefore();
      return duplicate;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence)
        throw new SentBefore();
      if (error instanceof JetStreamApiError && error.code === MESSAGE_TOO_LARGE)
        throw new CliError(EXIT.usage, `the message has ${size} bytes as encoded; its stream takes less`);
      // The answer was lost with the connection, and perhaps only the answer.
      const isLost = error instanceof errors.TimeoutError || error instanceof errors.RequestError;
      if (!isLost || attempt === PUBLISH_ATTEMPTS) throw error;
    }
}

function summaryOf(message: Words): string {
  const parts = typeof message === "string" ? [{ text: message }] : message.parts;
  const text = parts.map((part) => ("text" in part ? part.text : "(data)")).join(" ");
  return [...text.slice(0, 4 * SUMMARY_LENGTH)].slice(0, SUMMARY_LENGTH).join("");
}

/** How to follow a task to its end. */
export interface Following {
  /** Milliseconds from the task's publication; then {@link TimedOut}. */
  readonly timeoutMs: number;
  readonly onSent?: (sent: Sent) => void;
  /** Called for each event of the task, the terminal one included, repeated ones excepted. */
  readonly onEvent?: (event: TaskEvent) => void;
  /** Stops the waiting, not the task. */
  readonly signal?: AbortSignal;
}

/**
 * Sends a task and follows its events to the end, on an ordered consumer that is opened before the task is sent.
 *
 * @returns the terminal event: `rejected`, a `result`, or a `status` that says the task was cancelled
 * @throws TimedOut when none arrived in time; the signal's reason when it fires; the client's errors
 */
export async function askTask(nc: NatsConnection, ask: Order & Following): Promise<TaskEvent> {
  ask.signal?.throwIfAborted();
  await using feed = await openEvents(nc, [`a2a.v1.event.${ask.to}.${ask.from}.>`]);
  const sent = await sendTask(nc, ask);
  ask.onSent?.(sent);
  return await awaitEnd(feed, sent, ask);
}

/** A task to be found among events: by its id, and by its message's if it was not accepted yet. */
export type Known = Pick<Sent, "taskId"> & Partial<Sent>;

/** Follows one task in a feed to its end; see {@link askTask}. */
export function awaitEnd(feed: Feed, task: Known, following: Following): Promise<TaskEvent> {
  const wanted = ({ state }: TaskEvent) => isTerminal(state);
  return awaitEvent(feed, task, { ...following, wanted, what: "did not end" });
}

/** What to wait for, and what it means when it does not come. */
export interface Awaited extends Following {
  readonly wanted: (event: TaskEvent) => boolean;
  readonly what: string;
}

/** Follows one task in a feed to the first event that is wanted, or its end; see {@link askTask}. */
export async function awaitEvent(feed: Feed, task: Known, awaited: Awaited): Promise<TaskEvent> {
  const { timeoutMs, onEvent, signal, wanted, what } = awaited;
  signal?.throwIfAborted();
  let timeIsUp = false;
  // Who does not know the message, but the task's id alone, has that from an event.
  let isTaken = task.messageId === undefined;
  const timer = setTimeout(() => {
    timeIsUp = true;
    feed.messages.stop();
  }, timeoutMs);
  const stop = () => feed.messages.stop();
  signal?.addEventListener("abort", stop);
  try {
    for await (const event of eventsOfTask(eventsOf(feed), task)) {
      isTaken = true;
      onEvent?.(event);
      if (wanted(event)) return event;
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
  signal?.throwIfAborted();
  if (timeIsUp) throw new TimedOut(task.taskId, timeoutMs, what, isTaken);
  throw new CliError(EXIT.unreachable, `the connection to NATS was closed before ${task.taskId} ended`);
}

/** One task's events, each once: executors repeat what might have been lost (docs/wire.md, redelivery). */
async function* eventsOfTask(events: AsyncIterable<TaskEvent>, task: Known): AsyncGenerator<TaskEvent> {
  // An executor may choose ids of its own; `accepted` then binds its task id to our message.
  let taskId = task.taskId;
  const seen = new Set<string>();
  for await (const event of events) {
    if (event.kind === "accepted" && event.messageId === task.messageId) taskId = event.taskKey;
    if (event.taskKey !== taskId && event.taskKey !== `msg_${task.messageId}`) continue;
    const id = `${event.kind}:${event.revision}:${event.artifact?.id ?? ""}`;
    if (!seen.has(id)) yield event;
    seen.add(id);
  }
}
