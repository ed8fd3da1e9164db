import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { publishOnStream, putObject, readLastOn } from "../nats/index.ts";
import type { StreamMessage } from "../nats/stream-reads.ts";
import type { StoredEvent } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import { eventSubject, msgIdOf, readEvent, type TaskRef } from "../wire/index.ts";

/** Where events go; see docs/wire.md §3. */
const EVENTS_STREAM = "A2A_EVENTS";
const READ_TIMEOUT_MS = 5_000;
/** Younger events cannot have left a stream's duplicate window (two minutes, where nothing else is set). */
const SURELY_DEDUPLICATED_MS = 60_000;

/** What goes along with each event of a task. */
export interface Addressed extends TaskRef {
  readonly traceparent?: string;
}

/** The only place that sends events. */
export interface Publisher {
  /**
   * Sends one event and waits until the stream holds it. The artifact's object is copied first. That the stream has
   * it already is success.
   *
   * @param suffix makes another message of the same event: for a requester who asks again
   */
  publish(task: Addressed, event: StoredEvent, suffix?: string): Promise<void>;
  /** The revision of the last event of a task that the stream holds, 0 if it holds none. */
  lastRevision(task: Addressed): Promise<number>;
  /** {@link Publisher.publish}, but reads the stream first when the event is so old that it may not be deduplicated. */
  repeat(task: Addressed, event: StoredEvent, createdAt: number): Promise<void>;
}

/** An event's subject, and the id by which the stream knows it again (docs/wire.md §1 and §4). */
export function addressOf(task: TaskRef, event: StoredEvent): { subject: string; msgId: string } {
  const subject = eventSubject(task.to, task.from, taskKey(task, event.kind), event.kind);
  return { subject, msgId: msgId(task, event) };
}

function msgId(task: TaskRef, event: StoredEvent): string {
  const parts = { executor: task.to, delegator: task.from, taskId: task.taskId };
  switch (event.kind) {
    case "rejected":
      return msgIdOf({
        kind: "rejected",
        executor: task.to,
        delegator: task.from,
        messageId: task.messageId,
      });
    case "artifact":
      return msgIdOf({
        kind: "artifact",
        ...parts,
        artifactId: event.artifact?.id ?? "",
        revision: event.revision,
      });
    case "status":
      return msgIdOf({ kind: "status", ...parts, revision: event.revision });
    default:
      return msgIdOf({ kind: event.kind, ...parts });
  }
}

/** The subject's fourth part: the task, or before there is one the message (docs/wire.md, event subjects). */
function taskKey(task: TaskRef, kind: StoredEvent["kind"]): string {
  return kind === "rejected" ? `msg_${task.messageId}` : task.taskId;
}

/** The streams and the object store, as far as a publisher uses them. */
export interface EventStream {
  /** Puts an artifact's bytes where peers read them. */
  putObject(artifact: NonNullable<StoredEvent["artifact"]> & { readonly bytes: Uint8Array }): Promise<void>;
  /** Resolves when the stream holds the message, be it from an earlier attempt. */
  publish(message: {
    readonly subject: string;
    readonly msgId: string;
    readonly body: string;
    readonly traceparent?: string | undefined;
  }): Promise<void>;
  /** The last event on a subject, which may have wildcards; null when there is none. */
  lastOn(subject: string): Promise<Pick<StreamMessage, "subject" | "body"> | null>;
}

/**
 * A publisher over JetStream.
 *
 * @param options.connection the sandbox's connection, asked for at each event since it may have been replaced
 */
export function natsPublisher(options: {
  connection: () => Promise<NatsConnection>;
  values: Values;
  now: () => number;
}): Publisher {
  const { connection } = options;
  return publisherOver(
    {
      async putObject({ bytes, ...artifact }) {
        await putObject(await connection(), { ...artifact, bytes });
      },

      async publish({ subject, msgId, body, traceparent }) {
        await publishOnStream(await connection(), { subject, msgId, body }, traceparent);
      },

      async lastOn(subject) {
        const jsm = await jetstreamManager(await connection(), {
          checkAPI: false,
          timeout: READ_TIMEOUT_MS,
        });
        return await readLastOn(jsm, EVENTS_STREAM, subject);
      },
    },
    options,
  );
}

/** What a publisher does, whatever its streams are. */
export function publisherOver(
  stream: EventStream,
  { values, now }: { readonly values: Values; readonly now: () => number },
): Publisher {
  const publisher: Publisher = {
    async publish(task, event, suffix) {
      const { artifact } = event;
      if (artifact !== undefined)
        await stream.putObject({ ...artifact, bytes: await values.get(artifact.value) });
      const body = await values.text(event.body);
      const { subject, msgId } = addressOf(task, event);
      const { traceparent } = task;
      await stream.publish({
        subject,
        msgId: msgId + (suffix === undefined ? "" : `:${suffix}`),
        body,
        traceparent,
      });
    },

    async lastRevision(task) {
      const anyKind = eventSubject(task.to, task.from, task.taskId, "status").replace(/status$/, "*");
      const last = await stream.lastOn(anyKind);
      if (last === null) return 0;
      const read = readEvent(last.subject, last.body);
      return read.ok ? read.value.revision : 0;
    },

    async repeat(task, event, createdAt) {
      if (now() - createdAt > SURELY_DEDUPLICATED_MS && event.kind !== "rejected")
        if ((await publisher.lastRevision(task)) >= event.revision) return;
      await publisher.publish(task, event);
    },
  };
  return publisher;
}
