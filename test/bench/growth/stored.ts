import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstream } from "@nats-io/jetstream";
import { awsSettings } from "../../../infra/local/aws.ts";
import { dynamoStore } from "../../../shared/tasks/dynamodb-store.ts";
import { isTerminal } from "../../../shared/wire/index.ts";
import type { Received } from "../../support/peer.ts";
import { until } from "../../support/until.ts";
import { Load } from "../load.ts";
import { say } from "../print.ts";
import { type Grown, type GrowthRun, grown, inTurns, OF_A_PRODUCT, roundOf } from "./measures.ts";

const AGENT = "counted";
const PUBLISHED_AT_ONCE = 500;

/** Products whose tables and streams hold so many tasks that are over. */
export async function growthOfTasks({ sizes, rounds }: GrowthRun): Promise<Grown> {
  const loads: Load[] = [];
  try {
    for (const size of sizes) {
      say(`a product that holds ${size} tasks …`);
      const load = await Load.start(AGENT);
      loads.push(load);
      await fill(load, size);
    }
    return grown("tasks stored", sizes, OF_A_PRODUCT, await inTurns(loads, rounds, roundOf));
  } finally {
    await Promise.all(loads.map(({ sluice }) => sluice.stop()));
  }
}

/** Has the product do one task, and stores it as often under other ids as is wanted: its items and its events. */
async function fill(load: Load, count: number): Promise<void> {
  const taskId = await load.task();
  await settled(load, taskId);
  const events = await load.sluice.peer.events(taskId);
  const ids = Array.from({ length: count - 1 }, () => `task_${randomBytes(12).toString("hex")}`);
  storeCopies(join(load.sluice.dataDir, "dynamodb.sqlite"), load.sluice.host.tableName, taskId, ids);
  for (let at = 0; at < ids.length; at += PUBLISHED_AT_ONCE)
    await Promise.all(
      ids
        .slice(at, at + PUBLISHED_AT_ONCE)
        .flatMap((id) => events.map((event) => copy(load, event, taskId, id))),
    );
}

/** Waits until nobody need look at a task any more. */
async function settled({ sluice }: Load, taskId: string): Promise<void> {
  const client = new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb));
  const store = dynamoStore({ client: DynamoDBDocumentClient.from(client), table: sluice.host.tableName });
  await until("the task is settled", async () => {
    const head = await store.head(taskId);
    return head !== undefined && isTerminal(head.state) && head.dueAt === undefined;
  });
  client.destroy();
}

/** Copies a task's items in the file of DynamoDB's stand-in, as they lie there: by requests it would take minutes. */
function storeCopies(file: string, table: string, taskId: string, ids: readonly string[]): void {
  const db = new DatabaseSync(file);
  try {
    db.exec("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE");
    const insert = db.prepare(
      `INSERT INTO "${table}" (pk, sk, item_json, item_size, cached_at, hash_prefix)
       SELECT :id, sk, replace(item_json, pk, :id), item_size, cached_at, hash_prefix FROM "${table}" WHERE pk = :of`,
    );
    for (const id of ids) insert.run({ id, of: taskId });
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}

function copy({ sluice }: Load, event: Received, taskId: string, id: string): Promise<unknown> {
  const subject = event.subject.replace(taskId, id);
  const body = JSON.stringify(event.body).replaceAll(taskId, id);
  return jetstream(sluice.peer.nc).publish(subject, body, { msgID: `${subject}:${event.seq}` });
}
