/**
 * One process of the floor (test/bench/floor.ts): the same calls as a process of the product makes, and nothing else.
 */
import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { taskIdOf } from "../../../shared/wire/index.ts";
import { bareClient, type Client, type Received, sdkClient } from "./client.ts";
import { measure } from "./measure.ts";
import { type Assignment, assignment, order, type Way } from "./orders.ts";
import type { Script } from "./script.ts";

const MAX_BATCH = 10;
const MAX_PULL = 100;
const PULL_MS = 5_000;

const forwardedMessage = z.object({ ackSubject: z.string(), subject: z.string() });
const hint = z.object({ taskId: z.string() });

const [told] = await once(process, "message");
const own = assignment.parse(told);
const nc = await connect({ servers: own.nats });
const clients: Record<Way, Client> = { sdk: sdkClient(own), bare: bareClient(own) };
let { way } = own;

process.on("message", async (message) => {
  const asked = order.parse(message);
  if ("way" in asked) way = asked.way;
  else process.send?.({ ms: await measure({ ...asked, own, nc, client: clients[way] }) });
});
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });

if (own.role === "bridge") await bridge(own, nc);
else if (own.role === "admit") await each(own.tasksQueueUrl, MAX_BATCH, admit);
else if (own.role === "work") await each(own.workQueueUrl, 1, work);

/** Pulls, and sends on what has come, as many as have come together. */
async function bridge(
  { consumer: name, tasksQueueUrl, script }: Assignment,
  nc: NatsConnection,
): Promise<void> {
  const consumer = await jetstream(nc).consumers.get("A2A_TASKS", name);
  let batch: string[] = [];
  const flush = () => {
    if (batch.length > 0) void clients[way].send(tasksQueueUrl, batch);
    batch = [];
  };
  for (;;) {
    for await (const message of await consumer.fetch({ max_messages: MAX_PULL, expires: PULL_MS })) {
      const reply = "reply" in message ? String(message.reply) : "";
      const messageId = message.subject.split(".").at(-1) ?? "";
      const body = script.forwarded
        .replaceAll(script.ackSubject, reply)
        .replaceAll(script.messageId, messageId);
      if (batch.push(body) === MAX_BATCH) flush();
      else if (batch.length === 1) void turn().then(flush);
    }
  }
}

/** Receives, does what is to be done with it, and removes it, over and over. */
async function each(
  queueUrl: string,
  most: number,
  take: (client: Client, messages: readonly Received[]) => Promise<void>,
): Promise<void> {
  for (;;) {
    const client = clients[way];
    const messages = await client.receive(queueUrl, most);
    if (messages.length === 0) continue;
    await take(client, messages);
    await client.remove(
      queueUrl,
      messages.map(({ handle }) => handle),
    );
  }
}

async function admit(client: Client, messages: readonly Received[]): Promise<void> {
  const { script, workQueueUrl } = own;
  const forwarded = messages.map(({ body }) => forwardedMessage.parse(JSON.parse(body)));
  const tasks = forwarded.map(({ subject }) => {
    const [, , , from = "", to = "", messageId = ""] = subject.split(".");
    return taskIdOf(from, to, messageId);
  });
  await Promise.all(
    tasks.map(async (taskId) => {
      await client.put(textFor(script.head, taskId));
      await publish(script.accepted, taskId);
    }),
  );
  await client.send(
    workQueueUrl,
    tasks.map((taskId) => textFor(script.hint, taskId)),
  );
  await Promise.all(forwarded.map(({ ackSubject }) => nc.request(ackSubject, "+ACK")));
}

async function work(client: Client, [message]: readonly Received[]): Promise<void> {
  const { taskId } = hint.parse(JSON.parse(message?.body ?? ""));
  const { script } = own;
  await client.update(textFor(script.claim, taskId));
  await client.put(textFor(script.step, taskId));
  await client.put(textFor(script.end, taskId));
  await publish(script.result, taskId);
  await client.update(textFor(script.settle, taskId));
}

function textFor(text: string, taskId: string): string {
  return text.replaceAll(own.script.taskId, taskId);
}

async function publish({ subject, msgId, body }: Script["accepted"], taskId: string): Promise<void> {
  await jetstream(nc).publish(textFor(subject, taskId), textFor(body, taskId), {
    msgID: `${textFor(msgId, taskId)}:${taskId}`,
  });
}
