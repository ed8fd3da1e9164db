import { setTimeout as sleep } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import * as z from "zod";
import { Meter, type Passed } from "../../support/meter.ts";
import { Load } from "../load.ts";
import { type Script, script } from "./orders.ts";

const WARM_UP = 3;
const SETTLE_MS = 1_000;
/** Nobody must look at the floor's tasks: `sweep` would. */
const FAR_MS = 30 * 86_400_000;

/** Has the product do one task, and writes down what it asks of its parts. */
export async function readScript(agent: string): Promise<Script> {
  const meter = new Meter();
  const load = await Load.start(agent, { route: meter.route });
  try {
    await load.run(WARM_UP, 1);
    // A task is settled after its result is published.
    await sleep(SETTLE_MS);
    meter.reset();
    await load.run(1, 1);
    await sleep(SETTLE_MS);
    return await scriptOf(load, meter.passed);
  } finally {
    await load.sluice.stop();
    meter.stop();
  }
}

const batch = z.object({ Entries: z.tuple([z.object({ MessageBody: z.string() })]) });
const forwarded = z.object({ ackSubject: z.string() });
const hinted = z.object({ taskId: z.string() });
const headPut = z.looseObject({
  Item: z.looseObject({ dueAt: z.unknown(), messageId: z.object({ S: z.string() }) }),
});

async function scriptOf({ sluice }: Load, passed: readonly Passed[]): Promise<Script> {
  const of = (kind: string, most: number): string[] => {
    const bodies = passed.filter((one) => one.kind === kind).map(({ body }) => body);
    if (bodies.length !== most) throw new Error(`${kind}: expected ${most} requests, got ${bodies.length}`);
    return bodies;
  };
  const [sent = "", handed = ""] = of("sqs SendMessageBatch", 2).map(
    (body) => batch.parse(JSON.parse(body)).Entries[0].MessageBody,
  );
  const { taskId } = hinted.parse(JSON.parse(handed));
  const [head = "", step = "", end = ""] = of("dynamodb PutItem", 3).map(plain);
  const [claim = "", settle = ""] = of("dynamodb UpdateItem", 2).map(plain);
  const put = headPut.parse(JSON.parse(head));
  put.Item.dueAt = { N: String(Date.now() + FAR_MS) };
  const events = await eventsOf(sluice.peer.nc, taskId);
  return script.parse({
    taskId,
    messageId: put.Item.messageId.S,
    ackSubject: forwarded.parse(JSON.parse(sent)).ackSubject,
    forwarded: sent,
    hint: handed,
    head: JSON.stringify(put),
    claim,
    step,
    end,
    settle,
    accepted: events[0],
    result: events[1],
  });
}

/** The request as the product has made it: the meter asks for its units besides. */
function plain(body: string): string {
  const { ReturnConsumedCapacity: _, ...request } = z.record(z.string(), z.unknown()).parse(JSON.parse(body));
  return JSON.stringify(request);
}

async function eventsOf(nc: Load["sluice"]["peer"]["nc"], taskId: string): Promise<Script["accepted"][]> {
  const consumer = await jetstream(nc).consumers.get("A2A_EVENTS", {
    filter_subjects: [`a2a.v1.event.*.*.${taskId}.*`],
  });
  const events: Script["accepted"][] = [];
  for await (const message of await consumer.fetch({ max_messages: 2, expires: 5_000 }))
    events.push({
      subject: message.subject,
      msgId: message.headers?.get("Nats-Msg-Id") ?? "",
      body: message.string(),
    });
  return events;
}
