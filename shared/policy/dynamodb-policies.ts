import { GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { readItems } from "../tasks/dynamodb-batch.ts";
import { type Part, type TableAccess, transact } from "../tasks/dynamodb-transaction.ts";
import * as z from "../zod.ts";
import { POLICY_KEY, policyPartition } from "./dynamodb-standing.ts";
import { type PolicyFields, type RuntimePolicy, runtimePolicy } from "./runtime-policy.ts";

const DAY_SEC = 86_400;
/** How long it is kept who has changed what, in days. */
export const HISTORY_KEPT_DAYS = 400;
/** How long a plan is kept: longer than its token is good, so that it can be said that it was used. */
export const PLAN_KEPT_DAYS = 1;

const fieldChange = z.object({ field: z.string(), before: z.unknown(), after: z.unknown() });
const entry = z.object({
  /** The version that the change has made. */
  version: z.number(),
  /** When, in milliseconds since 1970. */
  at: z.number(),
  /** Who, in their own words. */
  by: z.string(),
  /** By which command. */
  command: z.string(),
  /** The values in force, before and after. */
  changes: z.array(fieldChange),
  /** The fields that are the table's from then on. */
  fields: z.array(z.string()),
  /** The plan that was carried out, if there was one. */
  plan: z.optional(z.string()),
});
/** That a policy was changed (docs/policy.md, history). */
export type HistoryEntry = z.infer<typeof entry>;

const plan = z.object({
  id: z.string(),
  at: z.number(),
  by: z.string(),
  /** The version that it is to be made to; 0 when there is none. */
  base: z.number(),
  /** What the table is to say. */
  fields: z.record(z.string(), z.unknown()),
  /** When it was carried out. */
  usedAt: z.optional(z.number()),
});
/** A change that is thought of, and not made. */
export type StoredPlan = z.infer<typeof plan>;

/** What became of a change: another may have come before it, or its plan was carried out already. */
export type Changed = "changed" | "conflict" | "used";

/** What is changed of agents' policies, and who has done so; for operators. */
export interface PolicyStore {
  policyOf(runtime: string): Promise<RuntimePolicy | undefined>;
  /** The same of many, in a request for each hundred, by runtime; those of which nothing was changed are left out. */
  policiesOf(runtimes: readonly string[]): Promise<ReadonlyMap<string, RuntimePolicy>>;
  /**
   * Changes a policy and notes that, both or neither.
   *
   * @param to.base the version that was known, 0 for none; that made is the next one
   */
  change(
    runtime: string,
    to: { readonly base: number; readonly fields: PolicyFields },
    entry: Omit<HistoryEntry, "version" | "fields">,
  ): Promise<Changed>;
  /** The changes, the latest first. */
  history(runtime: string, limit: number): Promise<HistoryEntry[]>;
  plan(runtime: string, of: StoredPlan): Promise<void>;
  planOf(runtime: string, id: string): Promise<StoredPlan | undefined>;
}

const HISTORY = "change#";
/** Sorts after all digits. */
const HISTORY_END = `${HISTORY}~`;
const historyKey = (version: number) => `${HISTORY}${String(version).padStart(10, "0")}`;
const planKey = (id: string) => `plan#${id}`;

/** The policies over DynamoDB, in a partition of the agent's own (docs/table.md). */
export function dynamoPolicies(access: TableAccess): PolicyStore {
  const { client, table } = access;
  const get = async (runtime: string, sk: string) => {
    const Key = { pk: policyPartition(runtime), sk };
    return (await client.send(new GetCommand({ TableName: table, Key, ConsistentRead: true }))).Item;
  };
  return {
    async policyOf(runtime) {
      const item = await get(runtime, POLICY_KEY);
      return item && runtimePolicy().parse(item);
    },

    async policiesOf(runtimes) {
      const keys = runtimes.map((runtime) => ({ pk: policyPartition(runtime), sk: POLICY_KEY }));
      const items = new Map((await readItems(access, keys)).map((item) => [item.pk, item]));
      return new Map(
        runtimes.flatMap((runtime) => {
          const item = items.get(policyPartition(runtime));
          return item === undefined ? [] : [[runtime, runtimePolicy().parse(item)] as const];
        }),
      );
    },

    async change(runtime, { base, fields }, of) {
      const parts = partsOf(table, runtime, { base, fields }, of);
      const verdicts = await transact(access, parts);
      if (verdicts === undefined) return "changed";
      // Of a plan that is carried out already the version has moved, too.
      return verdicts[2]?.held === false ? "used" : "conflict";
    },

    async history(runtime, limit) {
      const { Items } = await client.send(
        new QueryCommand({
          TableName: table,
          KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
          ExpressionAttributeValues: {
            ":pk": policyPartition(runtime),
            ":from": HISTORY,
            ":to": HISTORY_END,
          },
          ScanIndexForward: false,
          Limit: limit,
          ConsistentRead: true,
        }),
      );
      return (Items ?? []).map((item) => entry.parse(item));
    },

    async plan(runtime, of) {
      const expiresAt = Math.ceil(of.at / 1_000) + PLAN_KEPT_DAYS * DAY_SEC;
      const Item = { pk: policyPartition(runtime), sk: planKey(of.id), ...of, expiresAt };
      await client.send(new PutCommand({ TableName: table, Item }));
    },

    async planOf(runtime, id) {
      const item = await get(runtime, planKey(id));
      return item && plan.parse(item);
    },
  };
}

/** The new version, the note of it, and that its plan is used. */
function partsOf(
  table: string,
  runtime: string,
  { base, fields }: { readonly base: number; readonly fields: PolicyFields },
  of: Omit<HistoryEntry, "version" | "fields">,
): Part[] {
  const pk = policyPartition(runtime);
  const version = base + 1;
  const expiresAt = Math.ceil(of.at / 1_000) + HISTORY_KEPT_DAYS * DAY_SEC;
  const noted = { pk, sk: historyKey(version), version, ...of, fields: Object.keys(fields), expiresAt };
  const used: Part[] =
    of.plan === undefined
      ? []
      : [
          {
            Update: {
              TableName: table,
              Key: { pk, sk: planKey(of.plan) },
              UpdateExpression: "SET usedAt = :at",
              ConditionExpression: "attribute_exists(pk) AND attribute_not_exists(usedAt)",
              ExpressionAttributeValues: { ":at": of.at },
            },
          },
        ];
  const known = base === 0 ? {} : { ExpressionAttributeValues: { ":base": base } };
  return [
    {
      Put: {
        TableName: table,
        Item: { pk, sk: POLICY_KEY, version, fields },
        ConditionExpression: base === 0 ? "attribute_not_exists(pk)" : "version = :base",
        ...known,
      },
    },
    { Put: { TableName: table, Item: noted, ConditionExpression: "attribute_not_exists(pk)" } },
    ...used,
  ];
}
