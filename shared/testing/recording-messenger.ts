import { createHash } from "node:crypto";
import type { Messenger } from "../events/messenger.ts";
import type { Heard } from "../nats/index.ts";
import type { Outgoing } from "../wire/index.ts";
import { DUPLICATE_WINDOW_MS } from "./recording-publisher.ts";

/** A messenger that keeps what streams would keep. */
export interface RecordingMessenger extends Messenger {
  /** What was sent, in order; a message is twice in it if its stream takes it twice. */
  readonly sent: readonly Outgoing[];
  /** The peers' object store, by key: what {@link Messenger.fetch} finds. */
  readonly objects: Map<string, Uint8Array>;
  /** By the executor's task: what {@link Messenger.countArtifacts} finds. */
  readonly artifacts: Map<string, number>;
  /** What {@link Messenger.controlsHeard} answers next, in order, or fails with; when nothing is left, all is heard. */
  readonly heard: (Heard | Error)[];
}

/** A messenger in memory, for tests. */
export function recordingMessenger(options: { now: () => number }): RecordingMessenger {
  const { now } = options;
  const sent: Outgoing[] = [];
  const objects = new Map<string, Uint8Array>();
  const artifacts = new Map<string, number>();
  const heard: (Heard | Error)[] = [];
  /** When each message id was last taken. */
  const taken = new Map<string, number>();
  return {
    sent,
    objects,
    artifacts,
    heard,
    async controlsHeard() {
      const next = heard.shift() ?? { waiting: 0, unsettled: 0, handedOut: 0, settled: 0 };
      if (next instanceof Error) throw next;
      return next;
    },
    countArtifacts: async ({ childTaskId }) => artifacts.get(childTaskId) ?? 0,
    async send(message) {
      if (now() - (taken.get(message.msgId) ?? Number.NEGATIVE_INFINITY) < DUPLICATE_WINDOW_MS) return;
      taken.set(message.msgId, now());
      sent.push(message);
    },
    async fetch({ id, key, digest }) {
      const bytes = objects.get(key);
      if (bytes === undefined) throw new Error(`artifact ${id}: there is no object ${key}`);
      if (`sha256:${createHash("sha256").update(bytes).digest("hex")}` !== digest)
        throw new Error(`artifact ${id}: expected the bytes of its digest`);
      return Uint8Array.from(bytes);
    },
  };
}
