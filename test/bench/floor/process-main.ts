/**
 * One process of the floor (test/bench/floor.ts): the same calls as a process of the product makes, and nothing else.
 */
import { once } from "node:events";
import { jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { taskIdOf } from "../../../shared/wire/index.ts";
import { Batcher, BRIDGE_LINGER_MS, HINT_LINGER_MS } from "./batcher.ts";
import { bareClient, type Client, sdkClient } from "./client.ts";
import { measure } from "./measure.ts";
import { type Assignment, assignment, order, type Script, type Way } from "./orders.ts";

const MAX_PULL = 100;
const PULL_MS = 5_000;

const forwardedMessage = z.object({ ackSubject: z.string(), subject: z.string() });
const hint = z.object({ taskId: z.string() });

const [told] = await once(process, "message");
const own = assignment.parse(told);
const nc = await connect({ servers: own.nats });
const clients: Record<Way, Client> = { sdk: sdkClient(own), bare: bareClient(own) };
let { way } = own;
const toTasks = new Batcher(BRIDGE_LINGER_MS, (bodies) => clients[way].send(own.tasksQueueUrl, bodies));
const toWork = new Batcher(HINT_LINGER_MS, (bodies) => clients[way].send(own.workQueueUrl, bodies));

process.on("message", async (message) => {
  const asked = order.parse(message);
  if ("way" in asked) way = asked.way;
  else if ("measure" in asked)
    process.send?.({ ms: await measure({ ...asked, own, nc, client: clients[way] }) });
  else {
    await Promise.all(asked.take.map((body) => (own.role === "admit" ? admit : work)(clients[way], body)));
    process.send?.({ ready: true });
  }
});
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });

if (own.role === "bridge") await bridge(own, nc);

/** Pulls, and sends on what has come. */
async function bridge({ consumer: name, script }: Assignment, nc: NatsConnection): Promise<void> {
  const consumer = await jetstream(nc).consumers.get("A2A_TASKS", name);
  for (;;) {
    for await (const message of await consumer.fetch({ max_messages: MAX_PULL, expires: PULL_MS })) {
      const reply = "reply" in message ? String(message.reply) : "";
      const messageId = message.subject.split(".").at(-1) ?? "";
      const ours = script.forwarded.replaceAll(script.ackSubject, reply);
      void toTasks.add(ours.replaceAll(script.messageId, messageId));
    }
  }
}

async function admit(client: Client, body: string): Promise<void> {
  const { script } = own;
  const { subject, ackSubject } = forwardedMessage.parse(JSON.parse(body));
  const [, , , from = "", to = "", messageId = ""] = subject.split(".");
  const taskId = taskIdOf(from, to, messageId);
  await client.put(textFor(script.head, taskId));
  await publish(script.accepted, taskId);
  await toWork.add(textFor(script.hint, taskId));
  await nc.request(ackSubject, "+ACK");
}

async function work(client: Client, body: string): Promise<void> {
  const { taskId } = hint.parse(JSON.parse(body));
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
