import { setTimeout as sleep } from "node:timers/promises";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { type ConsumerInfo, type ConsumerMessages, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Timing } from "../../shared/config/timing.ts";
import { within } from "../../shared/nats/deadline.ts";
import { ackSubjectOf, type NatsLink, nak, nakDelay } from "../../shared/nats/index.ts";
import { createSender, depth, type Sender } from "../../shared/queues/index.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
import { forwardedOf, outgoing } from "./forward.ts";
import { Room } from "./room.ts";

/** The most that one request asks of JetStream, and how long it waits for it, in milliseconds. */
const MAX_PULL = 100;
const PULL_MS = 5_000;
/** The shortest wait that the client takes. */
const MIN_PULL_MS = 1_000;
/** How long a message waits for others to share its request to SQS, in milliseconds. */
const LINGER_MS = 2;
/** The pause after a pull that failed, and between two looks at a lost connection, in milliseconds. */
const RETRY_MS = 1_000;
const LOOK_MS = 50;

export interface LaneOptions {
  /** Asked before each pull, since its connection may have been replaced. */
  readonly link: Pick<NatsLink, "get" | "connected" | "closed" | "onDisconnect">;
  readonly sqs: SQSClient;
  readonly queueUrl: string;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  /** The durables, all of one stream. */
  readonly consumers: readonly ConsumerInfo[];
  /** How many messages the queue may hold. */
  readonly limit: number;
}

/** The way from a stream to its queue, for one run. */
export class Lane {
  readonly run = { forwarded: 0, givenBack: 0, redelivered: 0 };
  readonly #options: LaneOptions;
  readonly #room: Room;
  readonly #sender: Sender;
  readonly #abort = new AbortController();
  readonly #ending = new AbortController();
  readonly #pulls = new Set<ConsumerMessages>();
  readonly #inHand = new Set<Promise<void>>();
  #pulling: Promise<unknown> = Promise.resolve();

  constructor(options: LaneOptions) {
    const { sqs: client, queueUrl, limit, telemetry } = options;
    const { signal } = this.#abort;
    this.#options = options;
    this.#sender = createSender({ client, queueUrl, lingerMs: LINGER_MS, signal });
    this.#room = new Room({
      limit,
      measure: () => depth(client, queueUrl, signal),
      onError: (error) => telemetry.warn("a queue cannot be measured", { queueUrl, ...errorFields(error) }),
    });
  }

  /**
   * Pulls from all consumers until the time is over.
   *
   * @param left milliseconds until nothing more may be pulled
   */
  async pull(left: () => number): Promise<void> {
    const { consumers, limit, link } = this.#options;
    // The server holds a pull open and may answer it at any time, so it counts as if it were answered. Half of the
    // limit is for that; with more consumers than that they wait for each other.
    const batch = Math.max(1, Math.min(MAX_PULL, Math.floor(limit / 2 / Math.max(1, consumers.length))));
    // A pull that outlived its connection would ask for its whole batch again.
    const stopListening = link.onDisconnect(() => this.#closePulls());
    this.#pulling = Promise.all(consumers.map((consumer) => this.#pullFrom(consumer, batch, left)));
    await this.#pulling;
    stopListening();
  }

  /**
   * Ends the pulling, and brings what is in hand into the queue, or gives it back.
   *
   * @param budgetMs how long that may take, in milliseconds
   */
  async end(budgetMs: number): Promise<void> {
    this.#ending.abort();
    this.#room.close();
    // The open pulls end by themselves about now; a message on its way to one that is closed would come much later.
    await within(this.#pulling, budgetMs / 4);
    this.#closePulls();
    await this.#pulling;
    // Else the server might still answer a pull that nobody hears, and the message comes again only after its ack wait.
    await within(
      this.#flush().catch(() => undefined),
      budgetMs / 8,
    );
    await within(Promise.all(this.#inHand), (budgetMs * 3) / 8);
    this.#abort.abort();
    await within(Promise.all(this.#inHand), budgetMs / 4);
  }

  async #flush(): Promise<void> {
    if (!this.#options.link.connected) return;
    const nc = await this.#options.link.get();
    await nc.flush();
  }

  #closePulls(): void {
    for (const pull of this.#pulls) pull.close().catch(() => undefined);
  }

  async #pullFrom(info: ConsumerInfo, batch: number, left: () => number): Promise<void> {
    // What is left at the end is too short for another pull; the next run has begun by then.
    for (let first = true; first || left() >= MIN_PULL_MS; first = false) {
      const room = await this.#room.take(batch);
      if (room === 0) return;
      let received = 0;
      try {
        const nc = await this.#connection(info);
        if (nc === undefined) return;
        const consumer = jetstream(nc).consumers.getConsumerFromInfo(info);
        const remaining = left();
        const expires = Math.max(MIN_PULL_MS, remaining < PULL_MS + MIN_PULL_MS ? remaining : PULL_MS);
        const messages = await consumer.fetch({ max_messages: room, expires });
        this.#pulls.add(messages);
        if (this.#ending.signal.aborted) this.#closePulls();
        try {
          for await (const message of messages) {
            received++;
            this.#carry(message);
          }
        } finally {
          this.#pulls.delete(messages);
        }
      } catch (error) {
        await this.#failed(info, error);
      } finally {
        this.#room.release(room - received);
      }
    }
  }

  /**
   * The connection, when there is one: a lost one is waited for, since it restores itself; one that has given up, as it
   * does when its credentials are refused, is replaced. Undefined when the run ends first.
   */
  async #connection(info: ConsumerInfo): Promise<NatsConnection | undefined> {
    const { link } = this.#options;
    while (!this.#ending.signal.aborted) {
      if (!link.connected && !link.closed) await sleep(LOOK_MS);
      else
        try {
          return await link.get();
        } catch (error) {
          await this.#failed(info, error);
        }
    }
    return undefined;
  }

  async #failed(info: ConsumerInfo, error: unknown): Promise<void> {
    if (this.#ending.signal.aborted) return;
    const { stream_name: stream, name } = info;
    this.#options.telemetry.warn("a pull failed", { stream, consumer: name, ...errorFields(error) });
    await sleep(RETRY_MS, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }

  #carry(message: JsMsg): void {
    const carried = this.#toQueue(message).finally(() => this.#inHand.delete(carried));
    this.#inHand.add(carried);
  }

  async #toQueue(message: JsMsg): Promise<void> {
    try {
      await this.#sender.send(outgoing(forwardedOf(message)));
      this.#room.sent();
      this.run.forwarded++;
      if (message.info.deliveryCount > 1) this.run.redelivered++;
    } catch (error) {
      this.#room.release(1);
      this.run.givenBack++;
      await this.#giveBack(message, error);
    }
  }

  async #giveBack(message: JsMsg, error: unknown): Promise<void> {
    const { link, timing, telemetry } = this.#options;
    const { stream, deliveryCount: deliveries } = message.info;
    const nakMs = nakDelay(deliveries, timing);
    telemetry.warn("a message is given back", {
      stream,
      seq: message.seq,
      deliveries,
      nakMs,
      ...errorFields(error),
    });
    const patience = timing.marginMs / 4;
    const given = link.get().then((nc) => nak(nc, ackSubjectOf(message), nakMs, patience));
    const confirmed = await within(
      given.catch(() => false),
      patience,
    );
    if (confirmed !== true) telemetry.warn("a message comes again by itself", { stream, seq: message.seq });
  }
}
