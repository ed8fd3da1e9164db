import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "../zod.ts";
import type { TableAccess } from "./dynamodb-transaction.ts";
import { type PauseStore, pause } from "./pauses.ts";
import { slotsPartition } from "./slots.ts";

/** The sort key of the item that says that an agent is paused. */
export const PAUSE_KEY = "pause";
/** What the sort keys of tasks that were held back begin with, and what sorts after them all: ids are ASCII. */
const HELD = "held#";
const HELD_END = `${HELD}~`;

const heldItem = z.whenUsed(() => z.object({ sk: z.string(), taskId: z.string() }));

/** The pauses over DynamoDB, in the partition of the agent's slots. */
export function dynamoPauses({ client, table }: Pick<TableAccess, "client" | "table">): PauseStore {
  const key = (runtime: string, sk: string) => ({
    TableName: table,
    Key: { pk: slotsPartition(runtime), sk },
  });
  return {
    async pause(runtime, of) {
      const Item = { pk: slotsPartition(runtime), sk: PAUSE_KEY, ...of };
      await client.send(new PutCommand({ TableName: table, Item }));
    },

    async pauseOf(runtime) {
      const { Item } = await client.send(
        new GetCommand({ ...key(runtime, PAUSE_KEY), ConsistentRead: true }),
      );
      return Item === undefined ? undefined : pause().parse(Item);
    },

    async resume(runtime) {
      const isThere = "attribute_exists(pk)";
      try {
        await client.send(new DeleteCommand({ ...key(runtime, PAUSE_KEY), ConditionExpression: isThere }));
        return true;
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return false;
        throw error;
      }
    },

    async hold(runtime, taskId, expiresAt) {
      const Item = { pk: slotsPartition(runtime), sk: `${HELD}${taskId}`, taskId, expiresAt };
      await client.send(new PutCommand({ TableName: table, Item }));
    },

    async *held(runtime) {
      let from: Record<string, unknown> | undefined;
      do {
        const page = await client.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
            ExpressionAttributeValues: { ":pk": slotsPartition(runtime), ":from": HELD, ":to": HELD_END },
            ConsistentRead: true,
            ...(from === undefined ? {} : { ExclusiveStartKey: from }),
          }),
        );
        for (const item of page.Items ?? []) yield heldItem().parse(item).taskId;
        from = page.LastEvaluatedKey;
      } while (from !== undefined);
    },

    async release(runtime, taskId) {
      await client.send(new DeleteCommand(key(runtime, `${HELD}${taskId}`)));
    },
  };
}
