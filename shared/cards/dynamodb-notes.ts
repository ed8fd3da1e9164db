import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { HostedAgent } from "../config/deployment.ts";
import { POLICY_KEY, policyPartition } from "../policy/dynamodb-standing.ts";
import { readItems } from "../tasks/dynamodb-batch.ts";
import type { TableAccess } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";
import { factsName, PEERS_PARTITION } from "./peer-keys.ts";

/** The partition of what is noted of our cards (docs/table.md). */
export const CARDS_PARTITION = "cards";
/** The item that tells whose cards are in the bucket because of us. */
const PUBLISHED = { pk: CARDS_PARTITION, sk: "published" };
/** The item that tells what was signed. */
export const SIGNED = { pk: CARDS_PARTITION, sk: "signed" };

const published = z.whenUsed(() => z.object({ runtimes: z.optional(z.set(z.string())) }));

interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** What a run goes by. */
export interface Noted {
  /** Whose cards we have published, and not seen gone since: to be taken away when their agents are. */
  readonly published: ReadonlySet<string>;
  /** By runtime, what was changed of the agent's policy, as it stands in the table (in-force.ts). */
  readonly policies: ReadonlyMap<string, unknown>;
  /** By the remote agent's name, what is known of one that an agent of ours stands for, as it stands in the table. */
  readonly remotes: ReadonlyMap<string, unknown>;
  /** What was signed, as it stands in the table (dynamodb-signed.ts). */
  readonly signed: unknown;
}

/** What is noted of our agents' cards. */
export interface CardNotes {
  /** All that a run goes by, in one request for each hundred of items. */
  read(agents: readonly Pick<HostedAgent, "runtime" | "remote">[]): Promise<Noted>;
  /** Notes some as published; at least one. */
  add(runtimes: readonly string[]): Promise<void>;
  /** Forgets some; at least one. */
  forget(runtimes: readonly string[]): Promise<void>;
}

/** Over DynamoDB. Those that are published are a set in one item: added to and taken from in any order, by whomever. */
export function dynamoNotes(access: TableAccess): CardNotes {
  const update = async (verb: "ADD" | "DELETE", runtimes: readonly string[]) => {
    await access.client.send(
      new UpdateCommand({
        TableName: access.table,
        Key: PUBLISHED,
        UpdateExpression: `${verb} runtimes :runtimes`,
        ExpressionAttributeValues: { ":runtimes": new Set(runtimes) },
      }),
    );
  };
  return {
    async read(agents) {
      const policies = new Map(
        agents.map(({ runtime }) => [runtime, { pk: policyPartition(runtime), sk: POLICY_KEY }]),
      );
      const remotes = new Map(
        agents.flatMap(({ remote: id }) =>
          id === undefined ? [] : [[id, { pk: PEERS_PARTITION, sk: factsName({ transport: "http", id }) }]],
        ),
      );
      const keys = [PUBLISHED, SIGNED, ...policies.values(), ...remotes.values()];
      const items = await readItems(access, keys);
      const byKey = new Map(items.map((item) => [`${item.pk} ${item.sk}`, item]));
      const at = ({ pk, sk }: Key) => byKey.get(`${pk} ${sk}`);
      const found = (of: ReadonlyMap<string, Key>) => new Map(Array.from(of, ([id, key]) => [id, at(key)]));
      return {
        published: published().parse(at(PUBLISHED) ?? {}).runtimes ?? new Set(),
        policies: found(policies),
        remotes: found(remotes),
        signed: at(SIGNED),
      };
    },
    add: (runtimes) => update("ADD", runtimes),
    forget: (runtimes) => update("DELETE", runtimes),
  };
}
