import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { TableAccess } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";
import { PEERS_PARTITION } from "./peer-keys.ts";
import { type PeerStore, type PeerTexts, peersOver } from "./peer-store.ts";

/** Sorts after every name: names are ASCII. */
const LAST = "~";

const item = z.whenUsed(() => z.object({ sk: z.string(), version: z.int(), text: z.string() }));

/** What is known of peers, over DynamoDB, in a partition of its own. */
export function dynamoPeers(access: Pick<TableAccess, "client" | "table">): PeerStore {
  return peersOver(texts(access));
}

function texts({ client, table }: Pick<TableAccess, "client" | "table">): PeerTexts {
  const key = (sk: string) => ({ TableName: table, Key: { pk: PEERS_PARTITION, sk } });
  return {
    async all(prefix) {
      const found = new Map<string, { version: number; value: string }>();
      let from: Record<string, unknown> | undefined;
      do {
        const page = await client.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
            ExpressionAttributeValues: { ":pk": PEERS_PARTITION, ":from": prefix, ":to": `${prefix}${LAST}` },
            ConsistentRead: true,
            ...(from === undefined ? {} : { ExclusiveStartKey: from }),
          }),
        );
        for (const { sk, version, text } of (page.Items ?? []).map((of) => item().parse(of)))
          found.set(sk, { version, value: text });
        from = page.LastEvaluatedKey;
      } while (from !== undefined);
      return found;
    },

    async get(name) {
      const { Item } = await client.send(new GetCommand({ ...key(name), ConsistentRead: true }));
      if (Item === undefined) return undefined;
      const { version, text } = item().parse(Item);
      return { version, value: text };
    },

    async put(name, text, version) {
      return held(client.send(new PutCommand({ TableName: table, ...nextState(name, text, version) })));
    },

    remove: (name, version) => held(client.send(new DeleteCommand({ ...key(name), ...unchanged(version) }))),
  };
}

/** An item in the state after `version`, as a put. */
export function nextState(name: string, text: string, version: number) {
  return {
    Item: { pk: PEERS_PARTITION, sk: name, version: version + 1, text },
    ...unchanged(version),
  };
}

/** The item is still in the state that its writer has read. */
function unchanged(version: number) {
  return version === 0
    ? { ConditionExpression: "attribute_not_exists(pk)" }
    : { ConditionExpression: "version = :was", ExpressionAttributeValues: { ":was": version } };
}

/** Whether a write's condition held. */
async function held(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
