import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import {
  controlMessage,
  isTerminal,
  readEvent,
  type TaskEvent,
  type TaskRequest,
  taskIdOf,
  taskMessage,
} from "../../shared/wire/index.ts";

/** An event as it lies on the stream. */
export interface Received {
  readonly seq: number;
  readonly subject: string;
  readonly msgId: string;
  readonly body: Record<string, unknown>;
  readonly event: TaskEvent;
  readonly bytes: number;
}

/** An existing peer: it publishes tasks and controls, and reads events off the stream. It knows nothing of Sluice. */
export class Peer {
  readonly nc: NatsConnection;
  readonly id: string;

  private constructor(nc: NatsConnection, id: string) {
    this.nc = nc;
    this.id = id;
  }

  static async connect(url: string, id: string): Promise<Peer> {
    return new Peer(await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 100 }), id);
  }

  close(): Promise<void> {
    return this.nc.close();
  }

  taskId(to: string, messageId: string): string {
    return taskIdOf(this.id, to, messageId);
  }

  /** Publishes a message as it is. */
  async publish(
    subject: string,
    msgId: string,
    body: string | Uint8Array,
    extra: Record<string, string> = {},
  ) {
    const h = headers();
    for (const [name, value] of Object.entries(extra)) h.set(name, value);
    return await jetstream(this.nc).publish(subject, body, { msgID: msgId, headers: h });
  }

  /** Publishes a task; gives its id. */
  async ask(
    to: string,
    request: Partial<TaskRequest> & { channelRef: string },
    options: { messageId?: string; traceparent?: string } = {},
  ) {
    const messageId = options.messageId ?? `msg_${randomBytes(12).toString("hex")}`;
    const { subject, msgId, body } = taskMessage({
      from: this.id,
      to,
      messageId,
      request: { a2a: "hello", skillId: "task", delivery: {}, ...request },
      createdAt: new Date().toISOString(),
    });
    const { traceparent } = options;
    await this.publish(subject, msgId, body, traceparent === undefined ? {} : { traceparent });
    return { messageId, taskId: this.taskId(to, messageId), subject, msgId, body };
  }

  async control(to: string, taskId: string, kind: "cancel" | "status", revision: number, reason?: string) {
    const { subject, msgId, body } = controlMessage({
      from: this.id,
      to,
      taskId,
      kind,
      revision,
      ...(reason === undefined ? {} : { reason }),
      createdAt: new Date().toISOString(),
    });
    await this.publish(subject, msgId, body);
  }

  /** All events of the stream addressed to this peer, or of one task or message key, in the stream's order. */
  async events(key?: string, from: string = this.id): Promise<Received[]> {
    const js = jetstream(this.nc);
    const filter = `a2a.v1.event.*.${from}.${key ?? "*"}.*`;
    const consumer = await js.consumers.get("A2A_EVENTS", { filter_subjects: [filter] });
    const { num_pending } = await consumer.info();
    const received: Received[] = [];
    if (num_pending > 0) {
      for await (const message of await consumer.consume()) {
        const read = readEvent(message.subject, message.data);
        if (!read.ok) throw new Error(`${message.subject}: ${read.reason}`);
        received.push({
          seq: message.seq,
          subject: message.subject,
          msgId: message.headers?.get("Nats-Msg-Id") ?? "",
          body: JSON.parse(message.string()),
          event: read.value,
          bytes: message.data.byteLength,
        });
        if (received.length >= num_pending) break;
      }
    }
    await consumer.delete().catch(() => {});
    return received;
  }

  /** Waits for the terminal event of a task (or the rejection of a message), and gives all of its events. */
  async outcome(
    key: string,
    { timeoutMs = 60_000, from = this.id }: { timeoutMs?: number; from?: string } = {},
  ): Promise<Received[]> {
    for (const until = Date.now() + timeoutMs; Date.now() < until; await wait(50)) {
      const events = await this.events(key, from);
      if (events.some(({ event }) => isTerminal(event.state))) return events;
    }
    const seen = (await this.events(key, from)).map(({ event }) => `${event.revision} ${event.kind}`);
    throw new Error(
      `no terminal event of ${key} within ${timeoutMs} ms; seen: ${seen.join(", ") || "nothing"}`,
    );
  }
}
