import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  type DynamoDBDocumentClient,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { throughConflicts } from "./conflicts.ts";
import { HEAD_KEY } from "./items.ts";
import { SLOTS_KEY, slotsPartition } from "./slots.ts";

/** The client and the table that a store works on. */
export interface TableAccess {
  readonly client: DynamoDBDocumentClient;
  readonly table: string;
  /** Takes the pauses between two tries of a write that others keep out; by the machine's time unless it is said. */
  readonly pause?: (ms: number) => Promise<unknown>;
}

/** One write or check of a transaction. */
export type Part = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

/** Whether a part's condition held; if not, the item that was there. */
export interface Verdict {
  readonly held: boolean;
  readonly item: Record<string, unknown> | undefined;
}

/**
 * Writes all parts, or none. The SDK gives each transaction a token, so that one whose answer is lost and which it
 * repeats counts once (DynamoDB API: TransactWriteItems, ClientRequestToken).
 *
 * @returns nothing when all is written, otherwise what became of each part's condition
 */
export async function transact(
  { client, pause }: Pick<TableAccess, "client" | "pause">,
  parts: Part[],
): Promise<Verdict[] | undefined> {
  try {
    await throughConflicts(() => client.send(new TransactWriteCommand({ TransactItems: parts })), pause);
    return undefined;
  } catch (error) {
    if (!(error instanceof TransactionCanceledException)) throw error;
    const reasons = error.CancellationReasons ?? [];
    if (!reasons.some(({ Code }) => Code === "ConditionalCheckFailed")) throw error;
    return reasons.map(({ Code, Item }) => ({
      held: Code !== "ConditionalCheckFailed",
      item: Item === undefined ? undefined : unmarshall(Item),
    }));
  }
}

/** Where the items are that slots concern. */
export function keysOf({ table }: Pick<TableAccess, "table">) {
  const key = (pk: string, sk: string) => ({ TableName: table, Key: { pk, sk } });
  return {
    head: (taskId: string) => key(taskId, HEAD_KEY),
    slots: (runtime: string) => key(slotsPartition(runtime), SLOTS_KEY),
    place: (runtime: string, place: string) => key(slotsPartition(runtime), place),
  };
}

/** Takes one who waits off the count. */
export function countDown(access: Pick<TableAccess, "table">, runtime: string): Part {
  return {
    Update: {
      ...keysOf(access).slots(runtime),
      UpdateExpression: "ADD queued :minus",
      ExpressionAttributeValues: { ":minus": -1 },
    },
  };
}
