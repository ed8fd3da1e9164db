import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { taskIdOf } from "../../../shared/wire/index.ts";
import type { Client } from "./client.ts";
import type { Assignment, PartCall } from "./orders.ts";

const TEN = 10;
const PULL_MS = 5_000;

export interface Measuring {
  readonly measure: PartCall;
  /** How many calls; of messages in batches, how many batches. */
  readonly count: number;
  /** How many calls are under way at once. */
  readonly lanes: number;
  /** Makes the names of this process and this round its own. */
  readonly mark: string;
  readonly own: Assignment;
  readonly nc: NatsConnection;
  readonly client: Client;
}

type Call = (n: number) => Promise<unknown>;

/** Makes one kind of call over and over; gives how long they took in all, in milliseconds. */
export async function measure(options: Measuring): Promise<number> {
  const call = await callOf(options);
  const began = performance.now();
  await inLanes(options, call);
  return performance.now() - began;
}

async function inLanes({ count, lanes }: Pick<Measuring, "count" | "lanes">, call: Call): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** The call that is measured, once what it needs is there. */
async function callOf(options: Measuring): Promise<Call> {
  const { own, client, nc, mark, measure } = options;
  const { script, measureQueueUrl } = own;
  const textFor = (text: string, n: number) =>
    text.replaceAll(script.taskId, taskIdOf(mark, "measure", String(n)));
  const put = (n: number) => client.put(textFor(script.head, n));
  switch (measure) {
    case "put":
      return put;
    case "update":
      await inLanes(options, put);
      return (n) => client.update(textFor(script.claim, n));
    case "queue":
      return () => through(client, measureQueueUrl, [script.hint]);
    case "queueTen":
      return () => through(client, measureQueueUrl, Array<string>(TEN).fill(script.forwarded));
    case "publish":
      return (n) => publish(nc, options, n);
    case "ack":
      return acks(options);
  }
}

/** A batch from its sending to its removal. Others may receive it, and this one theirs. */
async function through(client: Client, queueUrl: string, bodies: readonly string[]): Promise<void> {
  await client.send(queueUrl, bodies);
  const received = await client.receive(queueUrl, bodies.length);
  if (received.length === 0) return;
  await client.remove(
    queueUrl,
    received.map(({ handle }) => handle),
  );
}

function publish(nc: NatsConnection, { own, mark }: Measuring, n: number): Promise<unknown> {
  const subject = `a2a.v1.task.${mark}.measured.${n}`;
  return jetstream(nc).publish(subject, own.script.result.body, { msgID: `${mark}-${n}` });
}

async function acks(options: Measuring): Promise<Call> {
  const { nc, mark, count } = options;
  await inLanes(options, (n) => publish(nc, options, n));
  const jsm = await jetstreamManager(nc);
  const filter_subject = `a2a.v1.task.${mark}.>`;
  const settings = {
    durable_name: mark,
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: -1,
    filter_subject,
  };
  await jsm.consumers.add("A2A_TASKS", settings);
  const consumer = await jetstream(nc).consumers.get("A2A_TASKS", mark);
  const replies: string[] = [];
  for await (const message of await consumer.fetch({ max_messages: count, expires: PULL_MS }))
    replies.push("reply" in message ? String(message.reply) : "");
  if (replies.length < count) throw new Error(`expected ${count} messages, got ${replies.length}`);
  return (n) => nc.request(replies[n] ?? "", "+ACK");
}
