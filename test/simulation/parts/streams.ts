import type { Scheduler } from "../scheduler.ts";

/** A message as its stream holds it. */
export interface Held {
  readonly stream: string;
  readonly seq: number;
  readonly subject: string;
  readonly msgId: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly time: number;
}

/** A message on its way to whoever pulls for a consumer. */
export interface Delivered extends Held {
  readonly consumer: string;
  readonly ackSubject: string;
  /** How often it has been delivered, this time included. */
  readonly deliveries: number;
}

/** What was said of a delivered message. */
export type Ack =
  | { readonly kind: "ack" }
  | { readonly kind: "nak"; readonly delayMs: number }
  | { readonly kind: "term"; readonly reason: string };

export interface StreamOptions {
  readonly name: string;
  /** What its subjects begin with. */
  readonly prefix: string;
  readonly duplicateMs: number;
}

export interface ConsumerOptions {
  readonly stream: string;
  readonly name: string;
  /** Whether a subject is for it. */
  readonly filter: (subject: string) => boolean;
  readonly ackWaitMs: number;
  /** Gets each message when it is due. */
  readonly deliver: (message: Delivered) => void;
}

interface Pending {
  readonly message: Held;
  deliveries: number;
  /** Forgets the redelivery. */
  forget: () => void;
}

interface Stream extends StreamOptions {
  readonly messages: Held[];
  /** When each id was last taken. */
  readonly known: Map<string, { readonly at: number; readonly seq: number }>;
  readonly last: Map<string, Held>;
}

/**
 * JetStream, as far as we rely on it: streams that know a message id again for a while, the last message on a subject,
 * and durable consumers with explicit acknowledgements, delays and redelivery (streams.contract.test.ts holds it against
 * a nats-server).
 */
export class SimulatedStreams {
  readonly #clock: Scheduler["clock"];
  readonly #streams = new Map<string, Stream>();
  readonly #consumers: { readonly options: ConsumerOptions; readonly pending: Map<number, Pending> }[] = [];

  constructor({ clock }: Pick<Scheduler, "clock">) {
    this.#clock = clock;
  }

  addStream(options: StreamOptions): void {
    this.#streams.set(options.name, { ...options, messages: [], known: new Map(), last: new Map() });
  }

  addConsumer(options: ConsumerOptions): void {
    this.#consumers.push({ options, pending: new Map() });
  }

  /** Takes a message, unless its stream has it already. */
  publish(of: {
    readonly subject: string;
    readonly msgId?: string | undefined;
    readonly body: string;
    readonly headers?: Readonly<Record<string, string>>;
  }): { readonly seq: number; readonly duplicate: boolean } {
    const stream = this.#streamOf(of.subject);
    const { msgId } = of;
    const now = this.#clock.now();
    const known = msgId === undefined ? undefined : stream.known.get(msgId);
    if (known !== undefined && now - known.at < stream.duplicateMs)
      return { seq: known.seq, duplicate: true };
    const held: Held = {
      stream: stream.name,
      seq: stream.messages.length + 1,
      subject: of.subject,
      msgId,
      headers: of.headers ?? {},
      body: of.body,
      time: now,
    };
    stream.messages.push(held);
    stream.last.set(of.subject, held);
    if (msgId !== undefined) stream.known.set(msgId, { at: now, seq: held.seq });
    for (const consumer of this.#consumers)
      if (consumer.options.stream === stream.name && consumer.options.filter(of.subject)) {
        const pending = { message: held, deliveries: 0, forget: () => {} };
        consumer.pending.set(held.seq, pending);
        this.#deliver(consumer, pending);
      }
    return { seq: held.seq, duplicate: false };
  }

  messages(stream: string): readonly Held[] {
    return this.#streams.get(stream)?.messages ?? [];
  }

  /** How many messages there are on a subject. */
  countOn(streamName: string, subject: string): number {
    return this.messages(streamName).filter((held) => held.subject === subject).length;
  }

  /** The last message on a subject, which may end in `*` for its last token. */
  lastOn(streamName: string, subject: string): Held | undefined {
    const stream = this.#streams.get(streamName);
    if (!subject.endsWith(".*")) return stream?.last.get(subject);
    const prefix = subject.slice(0, -1);
    let last: Held | undefined;
    for (const [on, held] of stream?.last ?? [])
      if (on.startsWith(prefix) && !on.slice(prefix.length).includes(".") && held.seq > (last?.seq ?? 0))
        last = held;
    return last;
  }

  /**
   * What is said on a message's ack subject, by whichever of its deliveries. Of a message that is settled already
   * nothing more is to be said (NATS documentation: "JetStream wire API").
   */
  acknowledge(
    ackSubject: string,
    payload: string,
  ): { readonly message: Held; readonly ack: Ack } | undefined {
    const [, , stream, name, , seq] = ackSubject.split(".");
    const consumer = this.#consumers.find(
      ({ options }) => options.stream === stream && options.name === name,
    );
    const pending = consumer?.pending.get(Number(seq));
    const ack = ackOf(payload);
    if (consumer === undefined || pending === undefined || ack === undefined) return undefined;
    pending.forget();
    if (ack.kind === "nak")
      pending.forget = this.#clock.timer(ack.delayMs, () => this.#deliver(consumer, pending));
    else consumer.pending.delete(Number(seq));
    return { message: pending.message, ack };
  }

  /** Messages that some consumer has neither acknowledged nor terminated. */
  get unsettled(): readonly Held[] {
    return this.#consumers.flatMap(({ pending }) => [...pending.values()].map(({ message }) => message));
  }

  #deliver(consumer: { readonly options: ConsumerOptions }, pending: Pending): void {
    const { options } = consumer;
    const { message } = pending;
    pending.deliveries++;
    pending.forget = this.#clock.timer(options.ackWaitMs, () => this.#deliver(consumer, pending));
    const ackSubject = [
      "$JS.ACK",
      options.stream,
      options.name,
      pending.deliveries,
      message.seq,
      1,
      1,
      0,
    ].join(".");
    options.deliver({ ...message, consumer: options.name, ackSubject, deliveries: pending.deliveries });
  }

  #streamOf(subject: string): Stream {
    for (const stream of this.#streams.values()) if (subject.startsWith(stream.prefix)) return stream;
    throw new Error(`the simulated streams: no stream takes ${subject}`);
  }
}

function ackOf(payload: string): Ack | undefined {
  if (payload.startsWith("+ACK")) return { kind: "ack" };
  if (payload.startsWith("+TERM")) return { kind: "term", reason: payload.slice("+TERM".length).trim() };
  const delay = /^-NAK \{"delay":(\d+)\}$/.exec(payload)?.[1];
  return delay === undefined ? undefined : { kind: "nak", delayMs: Number(delay) / 1_000_000 };
}
