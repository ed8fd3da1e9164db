import { setTimeout as wait } from "node:timers/promises";
import { BatchGetCommand } from "@aws-sdk/lib-dynamodb";
import { CONFLICT_TRIES, growingPause } from "./conflicts.ts";
import type { TableAccess } from "./dynamodb-transaction.ts";

/** The keys of one request, at the most (DynamoDB API: BatchGetItem). */
const MAX_KEYS = 100;

interface Key {
  readonly pk: string;
  readonly sk: string;
}

/**
 * Reads items, many in a request, in no order. Each is as it is at some moment of the read; those that are not there
 * are left out.
 *
 * @throws Error when DynamoDB has left out keys ten times over
 */
export async function readItems(
  access: TableAccess,
  keys: readonly Key[],
): Promise<Record<string, unknown>[]> {
  const requests = [];
  for (let at = 0; at < keys.length; at += MAX_KEYS)
    requests.push(readRequest(access, keys.slice(at, at + MAX_KEYS)));
  return (await Promise.all(requests)).flat();
}

async function readRequest(
  { client, table, pause = wait }: TableAccess,
  keys: readonly Key[],
): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  let left: Record<string, unknown>[] = keys.map(({ pk, sk }) => ({ pk, sk }));
  for (let tries = 1; ; tries++) {
    const { Responses, UnprocessedKeys } = await client.send(
      new BatchGetCommand({ RequestItems: { [table]: { Keys: left, ConsistentRead: true } } }),
    );
    items.push(...(Responses?.[table] ?? []));
    left = UnprocessedKeys?.[table]?.Keys ?? [];
    if (left.length === 0) return items;
    if (tries === CONFLICT_TRIES) throw new Error(`${left.length} items were not read in ${tries} tries`);
    // What is left out is throttled, which the SDK does not see (DynamoDB API: BatchGetItem, UnprocessedKeys).
    await pause(growingPause(tries));
  }
}
