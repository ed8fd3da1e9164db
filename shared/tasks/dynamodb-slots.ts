import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "../zod.ts";
import { readItems } from "./dynamodb-batch.ts";
import { IS_LIVE, LIVE, toHead } from "./dynamodb-head.ts";
import { NOBODY_WAITS } from "./dynamodb-leave.ts";
import { countDown, keysOf, type Part, type TableAccess, transact } from "./dynamodb-transaction.ts";
import { dueShard, type Head } from "./items.ts";
import { afterSender, LINE, LINE_END, placeInLine, slotsPartition } from "./slots.ts";
import type { Store } from "./store.ts";

/** What of the store concerns slots. */
export type SlotStore = Pick<
  Store,
  "claimSlot" | "queue" | "slots" | "allSlots" | "nextWaiter" | "dropWaiter"
>;

const slotsItem = z.whenUsed(() =>
  z.object({
    live: z._default(z.set(z.string()), () => new Set<string>()),
    queued: z._default(z.number(), 0),
    lastFrom: z.optional(z.string()),
  }),
);
const waitItem = z.whenUsed(() => z.object({ sk: z.string(), taskId: z.string() }));

const HAS_ROOM = "(attribute_not_exists(live) OR size(live) < :max)";
const IS_FULL = "(attribute_exists(live) AND size(live) >= :max)";

/** The slots over DynamoDB: transactions over a task's head, the agent's counts and its line (docs/table.md). */
export function dynamoSlots(access: TableAccess): SlotStore {
  const { client, table } = access;
  const keys = keysOf(access);

  return {
    async claimSlot(head, owner, dueAt, max) {
      const terms = termsOf(head, owner, dueAt, max);
      const { taskId, to, epoch, queued } = head;
      const refused = await transact(access, [
        { Update: { ...keys.head(taskId), ...claimOf(head, terms) } },
        { Update: { ...keys.slots(to), ...takingOf(head, terms) } },
        ...(queued === undefined ? [] : [{ Delete: keys.place(to, queued) }]),
      ]);
      if (refused === undefined) return claimed(head, terms);
      const [own] = refused;
      if (own?.held === true) return "full";
      const there = own?.item && toHead(own.item);
      // Our own write, whose answer was lost.
      return there?.owner === owner && there.epoch === epoch + 1 ? there : "stale";
    },

    async queue(head, max) {
      const { taskId, to, epoch, beat } = head;
      const place = placeInLine(head);
      const refused = await transact(access, [
        {
          Update: {
            ...keys.head(taskId),
            UpdateExpression: "SET queued = :queued",
            ConditionExpression: `${AS_READ} AND attribute_not_exists(queued)`,
            ExpressionAttributeNames: { "#state": "state" },
            ExpressionAttributeValues: { ":queued": place, ":epoch": epoch, ":beat": beat, ...LIVE },
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          },
        },
        {
          Update: {
            ...keys.slots(to),
            UpdateExpression: "ADD queued :one",
            ConditionExpression: `${IS_FULL} OR queued > :zero`,
            ExpressionAttributeValues: { ":one": 1, ":zero": 0, ":max": max },
          },
        },
        { Put: { TableName: table, Item: { pk: slotsPartition(to), sk: place, taskId } } },
      ]);
      if (refused === undefined) return "queued";
      const [own] = refused;
      if (own?.held === true) return "room";
      const there = own?.item && toHead(own.item);
      return there?.queued === place && there.epoch === epoch && there.beat === beat ? "queued" : "stale";
    },

    async slots(runtime) {
      const { Item } = await client.send(new GetCommand({ ...keys.slots(runtime), ConsistentRead: true }));
      return slotsItem().parse(Item ?? {});
    },

    async allSlots(runtimes) {
      const items = await readItems(
        access,
        runtimes.map((runtime) => keys.slots(runtime).Key),
      );
      const byPartition = new Map(items.map((item) => [item.pk, item]));
      return new Map(
        runtimes.map((runtime) => [
          runtime,
          slotsItem().parse(byPartition.get(slotsPartition(runtime)) ?? {}),
        ]),
      );
    },

    async nextWaiter(runtime, lastFrom) {
      // After all of the sender that was served last, on to the end; then from the beginning.
      for (const from of new Set([afterSender(lastFrom), LINE])) {
        const { Items } = await client.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
            ExpressionAttributeValues: { ":pk": slotsPartition(runtime), ":from": from, ":to": LINE_END },
            ConsistentRead: true,
            Limit: 1,
          }),
        );
        if (Items?.[0] === undefined) continue;
        const { sk, taskId } = waitItem().parse(Items[0]);
        return { to: runtime, taskId, place: sk };
      }
      return undefined;
    },

    async dropWaiter({ to, taskId, place }) {
      await transact(access, [
        { Delete: { ...keys.place(to, place), ConditionExpression: "attribute_exists(pk)" } },
        countDown(access, to),
        {
          ConditionCheck: {
            ...keys.head(taskId),
            ConditionExpression: "attribute_not_exists(queued) OR queued <> :queued",
            ExpressionAttributeValues: { ":queued": place },
          },
        },
      ]);
    },
  };
}

/** The head is as it was read, and the task may be claimed but holds no slot. */
const AS_READ = `epoch = :epoch AND beat = :beat AND ${IS_LIVE} AND attribute_not_exists(slot)`;

/** Under which terms a task is claimed. */
interface Terms {
  readonly owner: string;
  readonly max: number;
  /** Whether the task gets a slot: without a limit it only leaves the line. */
  readonly limited: boolean;
  /** When the claim is to be looked after; of the first one the admission has said so, unless the task had to wait. */
  readonly dueAt: number | undefined;
}

function termsOf({ epoch, queued }: Head, owner: string, dueAt: number, max: number): Terms {
  const again = epoch > 0 || queued !== undefined;
  return { owner, max, limited: Number.isFinite(max), dueAt: again ? dueAt : undefined };
}

/** The head under the claim: a transaction gives nothing back. */
function claimed(head: Head, { owner, limited, dueAt }: Terms): Head {
  const { queued: _queued, waiting: _waiting, ...rest } = head;
  return {
    ...rest,
    epoch: head.epoch + 1,
    owner,
    state: "TASK_STATE_WORKING",
    ...(dueAt === undefined ? {} : { dueAt }),
    ...(limited ? { slot: true } : {}),
  };
}

type Update = Omit<NonNullable<Part["Update"]>, "TableName" | "Key">;

/** The head's part of a claim. */
function claimOf({ taskId, epoch, beat, queued }: Head, { owner, limited, dueAt }: Terms): Update {
  const set = ["epoch = :next", "#owner = :owner", "#state = :working"];
  if (dueAt !== undefined) set.push("dueAt = :dueAt", "dueShard = :shard");
  if (limited) set.push("slot = :slot");
  return {
    UpdateExpression: `SET ${set.join(", ")} REMOVE waiting, queued`,
    ConditionExpression: `${AS_READ} AND ${
      queued === undefined ? "attribute_not_exists(queued)" : "queued = :queued"
    }`,
    ExpressionAttributeNames: { "#state": "state", "#owner": "owner" },
    ExpressionAttributeValues: {
      ":next": epoch + 1,
      ":owner": owner,
      ":epoch": epoch,
      ":beat": beat,
      ...(dueAt === undefined ? {} : { ":dueAt": dueAt, ":shard": dueShard(taskId) }),
      ...(limited ? { ":slot": true } : {}),
      ...(queued === undefined ? {} : { ":queued": queued }),
      ...LIVE,
    },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

/** The counts' part of a claim: nobody goes before those who wait, unless it is one of them. */
function takingOf({ taskId, from, queued }: Head, { limited, max }: Terms): Update {
  const adds: string[] = [];
  const conditions: string[] = [];
  if (limited) {
    adds.push("live :task");
    conditions.push(HAS_ROOM);
  }
  if (queued === undefined) conditions.push(NOBODY_WAITS);
  else adds.push("queued :minus");
  return {
    UpdateExpression: `ADD ${adds.join(", ")}${queued === undefined ? "" : " SET lastFrom = :from"}`,
    ...(conditions.length === 0 ? {} : { ConditionExpression: conditions.join(" AND ") }),
    ExpressionAttributeValues: {
      ...(limited ? { ":task": new Set([taskId]), ":max": max } : {}),
      ...(queued === undefined ? { ":zero": 0 } : { ":minus": -1, ":from": from }),
    },
  };
}
