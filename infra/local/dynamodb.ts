import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  DynamoDBClient,
  ResourceNotFoundException,
} from "@aws-sdk/client-dynamodb";
import * as z from "zod";
import { awsSettings } from "./aws.ts";
import { HostError } from "./errors.ts";
import { FileTrouble } from "./file-trouble.ts";
import { freePort } from "./ports.ts";
import type { Processes } from "./processes.ts";
import { Server } from "./server.ts";
import type { TableDeclaration } from "./stack.ts";

export interface DynamoDb {
  readonly url: string;
  readonly server: Server;
}

/**
 * Starts DynamoDB's local stand-in over a file in the data folder, and creates the declared tables that it lacks.
 *
 * @throws HostError `part_failed` when it does not start, `table_differs` when a stored table has other keys
 */
export async function startDynamoDb(
  dataDir: string,
  tables: readonly TableDeclaration[],
  processes: Processes,
  onTrouble: (message: string) => void,
  files = new FileTrouble(dataDir, onTrouble),
): Promise<DynamoDb> {
  const port = await freePort();
  const server = await Server.start(
    {
      name: "DynamoDB",
      command: binary(),
      args: ["serve", "--port", String(port), "--db-path", join(dataDir, "dynamodb.sqlite")],
      logPath: join(dataDir, "logs", "dynamodb.log"),
      ready: /listening on/,
      onTrouble,
      files,
    },
    processes,
  );
  const url = `http://127.0.0.1:${port}`;
  const client = new DynamoDBClient(awsSettings(url));
  try {
    for (const table of tables) await ensureTable(client, table);
  } catch (error) {
    await server.stop();
    throw error;
  } finally {
    client.destroy();
  }
  return { url, server };
}

function binary(): string {
  try {
    return join(
      dirname(createRequire(import.meta.url).resolve("@dynoxide/linux-x64/package.json")),
      "dynoxide",
    );
  } catch (error) {
    throw new HostError(
      "part_failed",
      `DynamoDB's local part (@dynoxide/linux-x64) is not installed: it exists for Linux on x64, ` +
        `this is ${process.platform} on ${process.arch}; on that platform, run npm ci without --omit=optional`,
      { cause: error },
    );
  }
}

const key = z.array(z.object({ AttributeName: z.string(), KeyType: z.enum(["HASH", "RANGE"]) }));
const index = z.object({
  IndexName: z.string(),
  KeySchema: key,
  Projection: z.object({
    ProjectionType: z.enum(["ALL", "INCLUDE", "KEYS_ONLY"]).optional(),
    NonKeyAttributes: z.array(z.string()).optional(),
  }),
});
const tableProperties = z.object({
  AttributeDefinitions: z.array(
    z.object({ AttributeName: z.string(), AttributeType: z.enum(["S", "N", "B"]) }),
  ),
  KeySchema: key,
  GlobalSecondaryIndexes: z.array(index).optional(),
});

async function ensureTable(client: DynamoDBClient, { name, properties }: TableDeclaration): Promise<void> {
  const parsed = tableProperties.safeParse(properties);
  if (!parsed.success)
    throw new HostError("assembly_invalid", `template: table ${name}: ${z.prettifyError(parsed.error)}`);
  const declared: CreateTableCommandInput = {
    ...parsed.data,
    TableName: name,
    BillingMode: "PAY_PER_REQUEST",
  };
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: name }));
    const stored = shape(Table?.KeySchema, Table?.GlobalSecondaryIndexes);
    const wanted = shape(declared.KeySchema, declared.GlobalSecondaryIndexes);
    if (stored !== wanted)
      throw new HostError(
        "table_differs",
        `table ${name}: the data folder's has keys ${stored}, the template declares ${wanted}; ` +
          "use another data folder, or remove this one to start anew",
      );
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error;
    await client.send(new CreateTableCommand(declared));
  }
}

type Keys = { AttributeName?: string | undefined; KeyType?: string | undefined }[] | undefined;

function shape(
  keys: Keys,
  indexes: { IndexName?: string | undefined; KeySchema?: Keys }[] | undefined,
): string {
  const of = (schema: Keys) =>
    (schema ?? [])
      .map((k) => `${k.AttributeName}:${k.KeyType}`)
      .sort()
      .join(",");
  const further = (indexes ?? []).map((i) => `${i.IndexName}(${of(i.KeySchema)})`).sort();
  return [of(keys), ...further].join(" ");
}
