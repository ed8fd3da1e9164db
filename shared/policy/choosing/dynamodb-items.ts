import { randomUUID } from "node:crypto";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { readItems } from "../../tasks/dynamodb-batch.ts";
import { found } from "../../tasks/dynamodb-head.ts";
import type { TableAccess } from "../../tasks/dynamodb-transaction.ts";
import * as z from "../../zod.ts";
import type { ItemStore } from "./items.ts";

const SORT_KEY = "choosing";
const stored = z.object({ pk: z.string(), version: z.string(), value: z.unknown() });

/** The kinds of items that choosing keeps; docs/table.md tells of each. */
export type ItemKind = "outcomes" | "circuit" | "cooldown" | "refusals";

/**
 * The items of one kind over DynamoDB, each a partition of its own.
 *
 * @param schema of the values; a value that is none is an error
 */
export function dynamoItems<T>(access: TableAccess, kind: ItemKind, schema: z.ZodMiniType<T>): ItemStore<T> {
  const { client, table } = access;
  const prefix = `choosing#${kind}#`;
  const keyOf = (key: string) => ({ pk: `${prefix}${key}`, sk: SORT_KEY });
  return {
    async read(key) {
      const { Item } = await client.send(
        new GetCommand({ TableName: table, Key: keyOf(key), ConsistentRead: true }),
      );
      if (Item === undefined) return undefined;
      const { version, value } = stored.parse(Item);
      return { version, value: schema.parse(value) };
    },

    async readAll(keys) {
      const items = await readItems(access, [...new Set(keys)].map(keyOf));
      const entries = items.map((item): [string, T] => {
        const { pk, value } = stored.parse(item);
        return [pk.slice(prefix.length), schema.parse(value)];
      });
      return new Map(entries);
    },

    async write(key, value, { over, expiresAt }) {
      const version = randomUUID();
      const Item = { ...keyOf(key), version, value, expiresAt: Math.ceil(expiresAt / 1_000) };
      try {
        await client.send(
          new PutCommand({
            TableName: table,
            Item,
            ...(over === undefined
              ? { ConditionExpression: "attribute_not_exists(pk)" }
              : {
                  ConditionExpression: "version = :over",
                  ExpressionAttributeValues: { ":over": over },
                }),
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        );
        return true;
      } catch (error) {
        // The SDK repeats a write whose answer is lost: what is there may be its own.
        return found(error)?.version === version;
      }
    },
  };
}
