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

/** The window in which a stream knows a message id again, where nothing else is set, in milliseconds. */
export const DUPLICATE_WINDOW_MS = 120_000;

/** A publisher that keeps what a stream and an object store would keep. */
export interface RecordingPublisher extends Publisher {
  /** The events of a task in the order in which they were published; one is twice in it if the stream takes it twice. */
  events(taskId: string): readonly Recorded[];
  /** What was copied to the peers' object store, by key. */
  readonly objects: ReadonlyMap<string, Uint8Array>;
}

/** A publisher in memory, for tests. */
export function recordingPublisher(options: { values: Values; now: () => number }): RecordingPublisher {
  const { values, now } = options;
  /** When each message id was last taken. */
  const taken = new Map<string, number>();
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
      if (now() - (taken.get(msgId) ?? Number.NEGATIVE_INFINITY) < DUPLICATE_WINDOW_MS) return;
      const read = readEvent(address.subject, Buffer.from(body));
      if (!read.ok) throw new Error(`${address.subject}: ${read.reason}`);
      taken.set(msgId, now());
      const recorded = { msgId, body, event: read.value };
      const known = byTask.get(task.taskId);
      if (known === undefined) byTask.set(task.taskId, [recorded]);
      else known.push(recorded);
    },

    lastRevision: async (task) => publisher.events(task.taskId).at(-1)?.event.revision ?? 0,

    async repeat(task, event, createdAt) {
      // As the real one does, and there is no margin that a simulated clock would need.
      const old = now() - createdAt >= DUPLICATE_WINDOW_MS && event.kind !== "rejected";
      if (old && (await publisher.lastRevision(task)) >= event.revision) return;
      await publisher.publish(task, event);
    },
  };
  return publisher;
}
