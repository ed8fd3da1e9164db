import { jetstream } from "@nats-io/jetstream";
import { isTerminal, readEvent, type TaskEvent } from "../../shared/wire/index.ts";
import type { Peer } from "./peer.ts";

/** An event as it lies on the stream. */
export interface Logged {
  readonly seq: number;
  readonly kind: string;
  readonly msgId: string;
  readonly event: TaskEvent;
  /** The body, byte for byte. */
  readonly body: string;
}

/** Every event for a peer, read as it comes, in the stream's order. */
export class EventLog {
  readonly #byKey = new Map<string, Logged[]>();
  readonly #stop: () => void;

  static async start(peer: Peer): Promise<EventLog> {
    const filter = `a2a.v1.event.*.${peer.id}.>`;
    const consumer = await jetstream(peer.nc).consumers.get("A2A_EVENTS", { filter_subjects: [filter] });
    const messages = await consumer.consume();
    const log = new EventLog(() => messages.stop());
    void (async () => {
      for await (const message of messages) {
        const read = readEvent(message.subject, message.data);
        if (!read.ok) throw new Error(`${message.subject}: ${read.reason}`);
        log.#add(message.subject.split(".")[5] ?? "", {
          seq: message.seq,
          kind: read.value.kind,
          msgId: message.headers?.get("Nats-Msg-Id") ?? "",
          event: read.value,
          body: message.string(),
        });
      }
    })();
    return log;
  }

  private constructor(stop: () => void) {
    this.#stop = stop;
  }

  #add(key: string, logged: Logged): void {
    this.#byKey.set(key, [...this.of(key), logged]);
  }

  /** The events of a task, or of a message that was rejected (`msg_` and its id). */
  of(key: string): readonly Logged[] {
    return this.#byKey.get(key) ?? [];
  }

  /** Whether the terminal event of a task is there. */
  ended(key: string): boolean {
    return this.of(key).some(({ event }) => isTerminal(event.state));
  }

  stop(): void {
    this.#stop();
  }
}
