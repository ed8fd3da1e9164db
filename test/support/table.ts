import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { awsSettings } from "../../infra/local/aws.ts";
import { startDynamoDb } from "../../infra/local/dynamodb.ts";
import { Processes } from "../../infra/local/processes.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { TABLE } from "./world.ts";

/** The store over a table of a test's own, and that table. */
export async function startTable(): Promise<{
  store: Store;
  access: TableAccess;
  stop: () => Promise<void>;
}> {
  const dir = mkdtempSync(join(tmpdir(), "sluice-table-"));
  const processes = new Processes(dir);
  const table = { name: "tasks", properties: { ...TABLE, TableName: "tasks" } };
  const dynamodb = await startDynamoDb(dir, [table], processes, () => {});
  const ddb = new DynamoDBClient(awsSettings(dynamodb.url));
  const client = DynamoDBDocumentClient.from(ddb, { marshallOptions: { removeUndefinedValues: true } });
  const access = { client, table: "tasks" };
  return {
    access,
    store: dynamoStore(access),
    async stop() {
      ddb.destroy();
      await dynamodb.server.stop();
      await processes.endAll();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
