import { setTimeout as wait } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { EventRecord } from "./ledger.ts";

const STREAM = "A2A_EVENTS";
/** The pause when there is nothing new, and when NATS does not answer, in milliseconds. */
const PAUSE_MS = 50;
const RETRY_MS = 500;

/** Reads the stream of events by its sequence, one message after the other, whatever happens to the server. */
export class EventReader {
  readonly events: EventRecord[] = [];
  readonly #nc: NatsConnection;
  readonly #take: (event: EventRecord) => void;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  /** @param take called with each event, once */
  constructor(nc: NatsConnection, take: (event: EventRecord) => void) {
    this.#nc = nc;
    this.#take = take;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        const jsm = await jetstreamManager(this.#nc, { checkAPI: false, timeout: 2_000 });
        for (let next = await this.#next(jsm); next !== null; next = await this.#next(jsm)) {
          this.events.push(next);
          this.#take(next);
        }
        await wait(PAUSE_MS);
      } catch {
        await wait(RETRY_MS); // it is being restarted, or the stream is not made yet
      }
    }
  }

  #next(jsm: JetStreamManager): Promise<EventRecord | null> {
    return readEventAt(jsm, (this.events.at(-1)?.seq ?? 0) + 1);
  }
}

/** All events that the stream holds now. */
export async function readAllEvents(nc: NatsConnection): Promise<EventRecord[]> {
  const jsm = await jetstreamManager(nc);
  const { last_seq } = (await jsm.streams.info(STREAM)).state;
  const events: EventRecord[] = [];
  for (let seq = 1; seq <= last_seq; seq++) {
    const event = await readEventAt(jsm, seq);
    if (event !== null) events.push(event);
  }
  return events;
}

async function readEventAt(jsm: JetStreamManager, seq: number): Promise<EventRecord | null> {
  const stored = await jsm.streams.getMessage(STREAM, { seq });
  if (stored === null) return null;
  return {
    seq,
    at: stored.time.getTime(),
    subject: stored.subject,
    msgId: stored.header.get("Nats-Msg-Id"),
    body: stored.string(),
  };
}
