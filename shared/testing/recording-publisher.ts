import { addressOf, type Publisher } from "../events/publisher.ts";
import type { Values } from "../tasks/values.ts";
import { readEvent, type TaskEvent } from "../wire/index.ts";

/** An event as it lies on the stream. */
export interface Recorded {
  readonly msgId: string;
  /** The body, byte for byte. */
  readonly body: string;
  readonly event: TaskEvent;
}

/** A publisher that keeps what a stream would: each message id once, in order; and the objects of artifacts. */
export interface RecordingPublisher extends Publisher {
  /** The events of a task, in the order in which they were first published. */
  events(taskId: string): readonly Recorded[];
  /** What was copied to the peers' object store, by key. */
  readonly objects: ReadonlyMap<string, Uint8Array>;
}

/** A publisher in memory, for tests. */
export function recordingPublisher(values: Values): RecordingPublisher {
  const ids = new Set<string>();
  const byTask = new Map<string, Recorded[]>();
  const objects = new Map<string, Uint8Array>();

  const publisher: RecordingPublisher = {
    objects,
    events: (taskId) => byTask.get(taskId) ?? [],

    async publish(task, event, suffix) {
      if (event.artifact !== undefined)
        objects.set(event.artifact.key, await values.get(event.artifact.value));
      const body = await values.text(event.body);
      const address = addressOf(task, event);
      const msgId = address.msgId + (suffix === undefined ? "" : `:${suffix}`);
      if (ids.has(msgId)) return;
      const read = readEvent(address.subject, Buffer.from(body));
      if (!read.ok) throw new Error(`${address.subject}: ${read.reason}`);
      ids.add(msgId);
      const recorded = { msgId, body, event: read.value };
      const known = byTask.get(task.taskId);
      if (known === undefined) byTask.set(task.taskId, [recorded]);
      else known.push(recorded);
    },

    lastRevision: async (task) => publisher.events(task.taskId).at(-1)?.event.revision ?? 0,
    // Nothing is ever forgotten here, so nothing need be looked for first.
    repeat: (task, event) => publisher.publish(task, event),
  };
  return publisher;
}
