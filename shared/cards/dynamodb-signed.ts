import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { type Part, type TableAccess, transact } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";
import { CARDS_PARTITION, SIGNED } from "./dynamodb-notes.ts";

/** The cards that one transaction writes: each at most `MAX_CARD_BYTES`, all of them at most 4 MB (DynamoDB API: TransactWriteItems). */
const MAX_CARDS_A_WRITE = 10;

const ledger = z.whenUsed(() =>
  z.object({
    version: z.int().check(z.positive()),
    did: z.string(),
    digests: z.record(z.string(), z.string()),
  }),
);

/** What was signed: by it a run knows what is new, without reading the cards. */
export interface SignedLedger {
  /** Counts the writes, from 1; each is made to the version that was known. */
  readonly version: number;
  /** The key that all of them are signed by but those that a run was about to sign anew. */
  readonly did: string;
  /** By runtime, the digest of the text that is signed. */
  readonly digests: Readonly<Record<string, string>>;
}

const kept = z.whenUsed(() => z.object({ card: z.string(), digest: z.string(), signedAt: z.number() }));

/** A signed card as it is kept. */
export interface KeptCard {
  /** In JSON, as it is to be served. */
  readonly card: string;
  /** Of the text that is signed; another one is another card. */
  readonly digest: string;
  /** Milliseconds since 1970. */
  readonly signedAt: number;
}

/** What a run has made of what was known. */
export interface SignedChange {
  readonly did: string;
  readonly cards: readonly (KeptCard & { readonly runtime: string })[];
  /** Whose cards go. */
  readonly gone: readonly string[];
}

/** What was signed, as the table has it. @throws z.core.$ZodError when it is of a version that this one does not know */
export function readLedger(item: unknown): SignedLedger | undefined {
  return item === undefined ? undefined : ledger().parse(item);
}

/**
 * Keeps signed cards and what is known of them, both or neither; of more than {@link MAX_CARDS_A_WRITE}, so many at a time.
 *
 * @param base the ledger that was read
 * @returns false if another has written meanwhile, who then knows better
 */
export async function keepSigned(
  access: TableAccess,
  base: SignedLedger | undefined,
  { did, cards, gone }: SignedChange,
): Promise<boolean> {
  const writes = [
    ...cards.map(({ runtime, card, digest, signedAt }) => ({
      runtime,
      digest,
      part: { Put: { TableName: access.table, Item: { ...cardKey(runtime), card, digest, signedAt } } },
    })),
    ...gone.map((runtime) => ({
      runtime,
      digest: undefined,
      part: { Delete: { TableName: access.table, Key: cardKey(runtime) } },
    })),
  ];
  const digests = new Map(Object.entries(base?.digests ?? {}));
  let version = base?.version ?? 0;
  for (let at = 0; at < writes.length; at += MAX_CARDS_A_WRITE) {
    const some = writes.slice(at, at + MAX_CARDS_A_WRITE);
    for (const { runtime, digest } of some)
      if (digest === undefined) digests.delete(runtime);
      else digests.set(runtime, digest);
    const next = { version: version + 1, did, digests: Object.fromEntries(digests) };
    const noted = ledgerPut(access.table, version, next);
    if ((await transact(access, [noted, ...some.map(({ part }) => part)])) !== undefined) return false;
    version++;
  }
  return true;
}

function ledgerPut(table: string, base: number, next: SignedLedger): Part {
  return {
    Put: {
      TableName: table,
      Item: { ...SIGNED, ...next },
      ConditionExpression: base === 0 ? "attribute_not_exists(pk)" : "version = :base",
      ...(base !== 0 && { ExpressionAttributeValues: { ":base": base } }),
    },
  };
}

/** What was signed; nothing while nothing was. @throws as {@link readLedger} */
export async function readSignedLedger(access: Access): Promise<SignedLedger | undefined> {
  return readLedger(await itemAt(access, SIGNED));
}

/** The signed card of an agent; nothing where there is none. */
export async function readSigned(access: Access, runtime: string): Promise<KeptCard | undefined> {
  const item = await itemAt(access, cardKey(runtime));
  return item && kept().parse(item);
}

type Access = Pick<TableAccess, "client" | "table">;

async function itemAt({ client, table }: Access, Key: ReturnType<typeof cardKey>) {
  return (await client.send(new GetCommand({ TableName: table, Key, ConsistentRead: true }))).Item;
}

function cardKey(runtime: string) {
  return { pk: CARDS_PARTITION, sk: `agent#${runtime}` };
}
