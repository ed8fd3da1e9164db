import { createHash } from "node:crypto";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  ARTIFACTS_BUCKET,
  CONTROLS_STREAM,
  controlsConsumer,
  countOn,
  EVENTS_STREAM,
  getObject,
  type Heard,
  heardBy,
  publishOnStream,
} from "../nats/index.ts";
import type { ChildKey } from "../tasks/store.ts";
import { type ArtifactRef, eventSubject, type Outgoing } from "../wire/index.ts";

/** The largest artifact that is fetched; what our own agents give out has the same bound (docs/wire.md §8). */
export const MAX_FETCHED_BYTES = 64 * 1024 * 1024;
/** How much of a text that a peer wrote stands in an error. */
const MAX_QUOTED = 128;
const READ_TIMEOUT_MS = 5_000;

/** How our agents speak to others: tasks that they hand on, controls of these, and what comes back of them. */
export interface Messenger {
  /**
   * Sends a task or a control and waits until its stream holds it. That the stream has it already is success.
   *
   * @throws when NATS cannot be reached, or does not take the message
   */
  send(message: Outgoing, traceparent?: string): Promise<void>;
  /**
   * The bytes of an artifact that an executor has given out, from the peers' object store; checked against the size
   * and the digest that its event names.
   *
   * @throws Error when they are not there, or are others
   */
  fetch(artifact: ArtifactRef): Promise<Uint8Array>;
  /**
   * How many events about artifacts of a task that was handed on are on the stream.
   *
   * @throws when NATS cannot be reached
   */
  countArtifacts(child: ChildKey): Promise<number>;
  /**
   * How far the controls for an agent of ours are heard: one that is settled is decided, and what it changes is in its
   * task's journal.
   *
   * @throws when NATS cannot be reached, or has no durable for them
   */
  controlsHeard(runtime: string): Promise<Heard>;
}

/**
 * A messenger over NATS.
 *
 * @param options.connection the sandbox's connection, asked for at each use since it may have been replaced
 */
export function natsMessenger(options: { readonly connection: () => Promise<NatsConnection> }): Messenger {
  return {
    async send(message, traceparent) {
      await publishOnStream(await options.connection(), message, traceparent);
    },

    async fetch(artifact) {
      const wrong = unfit(artifact);
      if (wrong !== undefined) throw failure(artifact, wrong);
      const nc = await options.connection();
      const bytes = await read(nc, artifact);
      const differs = difference(artifact, bytes);
      if (differs !== undefined) throw failure(artifact, differs);
      return bytes;
    },

    async countArtifacts({ executor, delegator, childTaskId }) {
      const nc = await options.connection();
      const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
      return countOn(jsm, EVENTS_STREAM, eventSubject(executor, delegator, childTaskId, "artifact"));
    },

    async controlsHeard(runtime) {
      const nc = await options.connection();
      const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
      return heardBy(jsm, CONTROLS_STREAM, controlsConsumer(runtime));
    },
  };
}

/** Why a reference is not followed: other buckets and larger objects were never meant for us. */
function unfit({ bucket, sizeBytes, digest }: ArtifactRef): string | undefined {
  if (bucket !== ARTIFACTS_BUCKET) return `bucket: expected ${ARTIFACTS_BUCKET}, got ${quoted(bucket)}`;
  if (sizeBytes > MAX_FETCHED_BYTES)
    return `sizeBytes: expected at most ${MAX_FETCHED_BYTES}, got ${sizeBytes}`;
  if (!/^sha256:[0-9a-f]{64}$/.test(digest))
    return `digest: expected sha256: and 64 hex digits in lower case, got ${quoted(digest)}`;
  return undefined;
}

async function read(nc: NatsConnection, artifact: ArtifactRef): Promise<Uint8Array> {
  let bytes: Uint8Array | null;
  try {
    bytes = await getObject(nc, artifact.key, artifact.sizeBytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw failure(artifact, `it cannot be read (${reason})`, { cause });
  }
  if (bytes === null) throw failure(artifact, `${ARTIFACTS_BUCKET} holds no object ${quoted(artifact.key)}`);
  return bytes;
}

/** What of the bytes is not as the event says. */
function difference({ sizeBytes, digest }: ArtifactRef, bytes: Uint8Array): string | undefined {
  if (bytes.byteLength !== sizeBytes) return `expected ${sizeBytes} bytes, got ${bytes.byteLength}`;
  const actual = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return actual === digest ? undefined : `expected bytes whose digest is ${digest}, got ${actual}`;
}

function failure({ name }: ArtifactRef, reason: string, options?: ErrorOptions): Error {
  return new Error(`artifact ${quoted(name)}: ${reason}`, options);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, MAX_QUOTED));
}
