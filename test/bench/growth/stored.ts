import { randomBytes } from "node:crypto";
import {
  type AttributeValue,
  BatchWriteItemCommand,
  DynamoDBClient,
  QueryCommand,
  type WriteRequest,
} from "@aws-sdk/client-dynamodb";
import { jetstream } from "@nats-io/jetstream";
import { awsSettings } from "../../../infra/local/aws.ts";
import type { Received } from "../../support/peer.ts";
import { until } from "../../support/until.ts";
import { Load } from "../load.ts";
import { say } from "../print.ts";
import { type Grown, type GrowthRun, grown, mediansOf, OF_A_PRODUCT, roundOf } from "./measures.ts";

const AGENT = "counted";
const MAX_BATCH = 25;
const LANES = 8;
const PUBLISHED_AT_ONCE = 500;

/** Products whose tables and streams hold so many tasks that are over, measured in turns. */
export async function growthOfTasks({ sizes, rounds }: GrowthRun): Promise<Grown> {
  const loads: Load[] = [];
  try {
    for (const size of sizes) {
      say(`a product that holds ${size} tasks …`);
      const load = await Load.start(AGENT);
      loads.push(load);
      await fill(load, size);
    }
    const measured: number[][][] = loads.map(() => []);
    // The first round warms up.
    for (let round = 0; round <= rounds; round++)
      for (const [at, load] of loads.entries()) {
        const values = await roundOf(load);
        if (round > 0) measured[at]?.push(values);
      }
    return grown("tasks stored", sizes, OF_A_PRODUCT, measured.map(mediansOf));
  } finally {
    await Promise.all(loads.map(({ sluice }) => sluice.stop()));
  }
}

/** Has the product do one task, and stores it as often under other ids as is wanted: its items and its events. */
async function fill(load: Load, count: number): Promise<void> {
  const { host, peer } = load.sluice;
  const taskId = await load.task();
  const client = new DynamoDBClient(awsSettings(host.endpoints.dynamodb));
  const { tableName } = host;
  const items = await settled(client, tableName, taskId);
  const events = await peer.events(taskId);
  const ids = Array.from({ length: count - 1 }, () => `task_${randomBytes(12).toString("hex")}`);
  const writes = ids.flatMap((id) => items.map((item) => put(item, id)));
  let next = 0;
  const lane = async () => {
    for (let at = next; at < writes.length; at = next) {
      next += MAX_BATCH;
      const RequestItems = { [tableName]: writes.slice(at, at + MAX_BATCH) };
      await client.send(new BatchWriteItemCommand({ RequestItems }));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  client.destroy();
  for (let at = 0; at < ids.length; at += PUBLISHED_AT_ONCE)
    await Promise.all(
      ids
        .slice(at, at + PUBLISHED_AT_ONCE)
        .flatMap((id) => events.map((event) => copy(load, event, taskId, id))),
    );
}

/** The items of a task that is over, once nobody need look at it any more. */
function settled(client: DynamoDBClient, table: string, taskId: string) {
  return until("the task is settled", async () => {
    const { Items = [] } = await client.send(
      new QueryCommand({
        TableName: table,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": { S: taskId } },
      }),
    );
    return Items.length > 0 && Items.every(({ dueAt }) => dueAt === undefined) ? Items : undefined;
  });
}

function put(item: Record<string, AttributeValue>, id: string): WriteRequest {
  return { PutRequest: { Item: { ...item, pk: { S: id } } } };
}

function copy({ sluice }: Load, event: Received, taskId: string, id: string): Promise<unknown> {
  const subject = event.subject.replace(taskId, id);
  const body = JSON.stringify(event.body).replaceAll(taskId, id);
  return jetstream(sluice.peer.nc).publish(subject, body, { msgID: `${subject}:${event.seq}` });
}
