import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { withAcceptedKey } from "../remotes/refresh.ts";
import { type TableAccess, transact } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";
import { nextState } from "./dynamodb-peers.ts";
import type { HttpFacts } from "./peer-facts.ts";
import { factsName, PEERS_PARTITION } from "./peer-keys.ts";
import type { Stored } from "./peer-store.ts";

/** How long it is kept who has accepted which key, in days. */
export const ACCEPTANCES_KEPT_DAYS = 400;

const acceptance = z.object({
  /** When, in milliseconds since 1970. */
  at: z.number(),
  /** Who, in their own words. */
  by: z.string(),
  /** The key that was pinned, and the one in its place; without it the next card's is taken, whatever it is. */
  before: z.optional(z.string()),
  after: z.optional(z.string()),
});
/** That an operator has accepted another key of a remote agent. */
export type Acceptance = z.infer<typeof acceptance>;

const prefixOf = (name: string) => `accepted#${name}#`;

/**
 * Pins another key of a remote agent, and notes who has wanted it: both or neither.
 *
 * @param known what is pinned now
 * @param key the key; none to take the next card by whatever key, or unsigned
 * @returns the note; nothing when what was known has changed meanwhile
 */
export async function acceptKey(
  access: TableAccess,
  known: Stored<HttpFacts>,
  { key, at, by }: { readonly key: string | undefined; readonly at: number; readonly by: string },
): Promise<Acceptance | undefined> {
  const { value: facts, version } = known;
  const { key: before } = facts.signature;
  const note: Acceptance = {
    ...{ at, by },
    ...(before !== undefined && { before }),
    ...(key !== undefined && { after: key }),
  };
  const text = JSON.stringify(withAcceptedKey(facts, key));
  const sk = `${prefixOf(facts.id)}${new Date(at).toISOString()}`;
  const expiresAt = Math.ceil(at / 1_000) + ACCEPTANCES_KEPT_DAYS * 86_400;
  const TableName = access.table;
  const refused = await transact(access, [
    { Put: { TableName, ...nextState(factsName(facts), text, version) } },
    {
      Put: {
        TableName,
        Item: { pk: PEERS_PARTITION, sk, ...note, expiresAt },
        ConditionExpression: "attribute_not_exists(pk)",
      },
    },
  ]);
  return refused === undefined ? note : undefined;
}

/** Which keys of a remote agent operators have accepted, the latest first. */
export async function acceptances(
  { client, table }: Pick<TableAccess, "client" | "table">,
  name: string,
  limit: number,
): Promise<Acceptance[]> {
  const { Items } = await client.send(
    new QueryCommand({
      TableName: table,
      KeyConditionExpression: "pk = :pk AND begins_with(sk, :of)",
      ExpressionAttributeValues: { ":pk": PEERS_PARTITION, ":of": prefixOf(name) },
      ScanIndexForward: false,
      Limit: limit,
      ConsistentRead: true,
    }),
  );
  return (Items ?? []).map((item) => acceptance.parse(item));
}
