import { GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { TableAccess } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";

/** The key of the item that tells whose cards are in the bucket because of us. */
const KEY = { pk: "cards", sk: "published" };

const item = z.whenUsed(() => z.object({ runtimes: z.optional(z.set(z.string())) }));

/** Whose cards we have published, and not seen gone since: to be taken away when their agents are (docs/table.md). */
export interface Published {
  all(): Promise<ReadonlySet<string>>;
  /** Adds some; at least one. */
  add(runtimes: readonly string[]): Promise<void>;
  /** Forgets some; at least one. */
  forget(runtimes: readonly string[]): Promise<void>;
}

/** Over DynamoDB, one item for all: a set is added to and taken from in any order, whoever else does so. */
export function dynamoPublished({ client, table }: Pick<TableAccess, "client" | "table">): Published {
  const update = async (verb: "ADD" | "DELETE", runtimes: readonly string[]) => {
    await client.send(
      new UpdateCommand({
        TableName: table,
        Key: KEY,
        UpdateExpression: `${verb} runtimes :runtimes`,
        ExpressionAttributeValues: { ":runtimes": new Set(runtimes) },
      }),
    );
  };
  return {
    async all() {
      const { Item } = await client.send(
        new GetCommand({ TableName: table, Key: KEY, ConsistentRead: true }),
      );
      return Item === undefined ? new Set() : (item().parse(Item).runtimes ?? new Set());
    },
    add: (runtimes) => update("ADD", runtimes),
    forget: (runtimes) => update("DELETE", runtimes),
  };
}
