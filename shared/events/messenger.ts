import type { NatsConnection } from "@nats-io/transport-node";
import type { ArtifactRef, Outgoing } from "../wire/index.ts";

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
}

/** A messenger over JetStream. */
export function natsMessenger(_options: { connection: () => Promise<NatsConnection> }): Messenger {
  return {
    send: () => Promise.reject(new Error("not there yet")),
    fetch: () => Promise.reject(new Error("not there yet")),
  };
}
