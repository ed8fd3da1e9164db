import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  type DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
  TransactWriteCommand,
  type TransactWriteCommandInput,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import * as z from "zod";
import { throughConflicts } from "./conflicts.ts";
import { found, type HeadUpdate, IS_LIVE, LIVE, toHead } from "./dynamodb-head.ts";
import { dueShard, HEAD_KEY, type Head } from "./items.ts";
import { afterSender, type Held, LINE, LINE_END, placeInLine, SLOTS_KEY, slotsPartition } from "./slots.ts";
import type { Left, Store } from "./store.ts";

type Part = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

/** Whether the condition of each part held, and the item that was there where one did not. */
type Outcome = { readonly ok: boolean; readonly item: Record<string, unknown> | undefined }[];

const slotsItem = z.object({
  live: z.set(z.string()).default(new Set<string>()),
  queued: z.number().default(0),
  lastFrom: z.string().optional(),
});
const waitItem = z.object({ sk: z.string(), taskId: z.string() });

const HAS_ROOM = "(attribute_not_exists(live) OR size(live) < :max)";
const IS_FULL = "(attribute_exists(live) AND size(live) >= :max)";
const NOBODY_WAITS = "(attribute_not_exists(queued) OR queued = :zero)";
/** What each transaction finds who looks at a head that has changed meanwhile, it is made again; so often at the most. */
const MAX_TURNS = 5;

/** Of the store what concerns slots, and the update by which a task leaves. */
export interface SlotStore
  extends Pick<Store, "claimSlot" | "queue" | "slots" | "nextWaiter" | "dropWaiter"> {
  /**
   * Updates a head, and in the same transaction gives up the slot that its task holds, or its place in the line.
   *
   * @param held what is believed of the slot; if it is otherwise, the head that is there counts
   */
  leave(held: Held, update: HeadUpdate): Promise<Left>;
}

/** The slots over DynamoDB: transactions over a task's head, the agent's counts and its line (docs/table.md). */
export function dynamoSlots(options: { client: DynamoDBDocumentClient; table: string }): SlotStore {
  const { client, table } = options;
  const headKey = (taskId: string) => ({ TableName: table, Key: { pk: taskId, sk: HEAD_KEY } });
  const slotsKey = (runtime: string) => ({
    TableName: table,
    Key: { pk: slotsPartition(runtime), sk: SLOTS_KEY },
  });
  const placeKey = (runtime: string, place: string) => ({
    TableName: table,
    Key: { pk: slotsPartition(runtime), sk: place },
  });

  /** Nothing when all is written. The SDK gives each transaction a token, so one whose answer is lost counts once. */
  async function transact(parts: Part[]): Promise<Outcome | undefined> {
    try {
      await throughConflicts(() => client.send(new TransactWriteCommand({ TransactItems: parts })));
      return undefined;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw error;
      const reasons = error.CancellationReasons ?? [];
      if (!reasons.some(({ Code }) => Code === "ConditionalCheckFailed")) throw error;
      return reasons.map(({ Code, Item }) => ({
        ok: Code !== "ConditionalCheckFailed",
        item: Item === undefined ? undefined : unmarshall(Item),
      }));
    }
  }

  function countDown(runtime: string): Part {
    return {
      Update: {
        ...slotsKey(runtime),
        UpdateExpression: "ADD queued :minus",
        ExpressionAttributeValues: { ":minus": -1 },
      },
    };
  }

  /** The parts besides the head's by which a task gives up its slot, or its place. */
  function giveUp({ taskId, to, queued }: Held, unlessAwaited: boolean): Part[] {
    if (queued !== undefined) return [{ Delete: placeKey(to, queued) }, countDown(to)];
    return [
      {
        Update: {
          ...slotsKey(to),
          UpdateExpression: "DELETE live :task",
          ExpressionAttributeValues: {
            ":task": new Set([taskId]),
            ...(unlessAwaited ? { ":zero": 0 } : {}),
          },
          ...(unlessAwaited ? { ConditionExpression: NOBODY_WAITS } : {}),
        },
      },
    ];
  }

  function headUpdate(held: Held, { set, remove, condition, names, values }: HeadUpdate) {
    const { slot, queued } = held;
    const gives = slot === true ? ["slot"] : queued === undefined ? [] : ["queued"];
    return {
      ...headKey(held.taskId),
      UpdateExpression: `SET ${set.join(", ")} REMOVE ${[...remove, ...gives].join(", ")}`,
      ConditionExpression: [
        condition,
        slot === true ? "slot = :slot" : "attribute_not_exists(slot)",
        queued === undefined ? "attribute_not_exists(queued)" : "queued = :queued",
      ].join(" AND "),
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: {
        ...values,
        ...(slot === true ? { ":slot": true } : {}),
        ...(queued === undefined ? {} : { ":queued": queued }),
      },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
    };
  }

  /** One turn of {@link SlotStore.leave}: what it did, or the head that is not as it was believed to be. */
  async function tryToLeave(
    held: Held,
    update: HeadUpdate,
  ): Promise<Left | { readonly there: Head | undefined }> {
    const own = headUpdate(held, update);
    if (held.slot !== true && held.queued === undefined) {
      try {
        await throughConflicts(() => client.send(new UpdateCommand(own)));
        return { left: true, waited: false };
      } catch (error) {
        const item = found(error);
        return { there: item && toHead(item) };
      }
    }
    // The common way needs no look at the line: the condition says that nobody is in it.
    for (const unlessAwaited of held.queued === undefined ? [true, false] : [false]) {
      const refused = await transact([{ Update: own }, ...giveUp(held, unlessAwaited)]);
      if (refused === undefined) return { left: true, waited: !unlessAwaited };
      const [head] = refused;
      if (head?.ok !== true) return { there: head?.item && toHead(head.item) };
    }
    throw new Error(`the slot of task ${held.taskId} could not be given up`);
  }

  return {
    async claimSlot(head, owner, dueAt, max) {
      const { taskId, to, from, epoch, beat, queued } = head;
      // The first claim leaves the index as it is, like the one without a slot; what has waited is due anew.
      const again = epoch > 0 || queued !== undefined;
      const limited = Number.isFinite(max);
      const { queued: _queued, waiting: _waiting, ...rest } = head;
      const claimed: Head = {
        ...rest,
        epoch: epoch + 1,
        owner,
        state: "TASK_STATE_WORKING",
        ...(again ? { dueAt } : {}),
        ...(limited ? { slot: true } : {}),
      };
      const set = ["epoch = :next", "#owner = :owner", "#state = :working"];
      if (again) set.push("dueAt = :dueAt", "dueShard = :shard");
      if (limited) set.push("slot = :slot");
      const own: Part = {
        Update: {
          ...headKey(taskId),
          UpdateExpression: `SET ${set.join(", ")} REMOVE waiting, queued`,
          ConditionExpression: [
            `epoch = :epoch AND beat = :beat AND ${IS_LIVE} AND attribute_not_exists(slot)`,
            queued === undefined ? "attribute_not_exists(queued)" : "queued = :queued",
          ].join(" AND "),
          ExpressionAttributeNames: { "#state": "state", "#owner": "owner" },
          ExpressionAttributeValues: {
            ":next": epoch + 1,
            ":owner": owner,
            ":epoch": epoch,
            ":beat": beat,
            ...(again ? { ":dueAt": dueAt, ":shard": dueShard(taskId) } : {}),
            ...(limited ? { ":slot": true } : {}),
            ...(queued === undefined ? {} : { ":queued": queued }),
            ...LIVE,
          },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        },
      };
      const adds = [limited ? ["live :task"] : [], queued === undefined ? [] : ["queued :minus"]].flat();
      const conditions = [limited ? [HAS_ROOM] : [], queued === undefined ? [NOBODY_WAITS] : []].flat();
      const slots: Part = {
        Update: {
          ...slotsKey(to),
          UpdateExpression: `ADD ${adds.join(", ")}${queued === undefined ? "" : " SET lastFrom = :from"}`,
          ...(conditions.length === 0 ? {} : { ConditionExpression: conditions.join(" AND ") }),
          ExpressionAttributeValues: {
            ...(limited ? { ":task": new Set([taskId]), ":max": max } : {}),
            ...(queued === undefined ? { ":zero": 0 } : { ":minus": -1, ":from": from }),
          },
        },
      };
      const line: Part[] = queued === undefined ? [] : [{ Delete: placeKey(to, queued) }];
      const refused = await transact([own, slots, ...line]);
      if (refused === undefined) return claimed;
      const [first] = refused;
      if (first?.ok === true) return "full";
      const there = first?.item && toHead(first.item);
      return there?.owner === owner && there.epoch === epoch + 1 ? there : "stale";
    },

    async queue(head, max) {
      const { taskId, to, epoch, beat } = head;
      const place = placeInLine(head);
      const refused = await transact([
        {
          Update: {
            ...headKey(taskId),
            UpdateExpression: "SET queued = :queued",
            ConditionExpression: `epoch = :epoch AND beat = :beat AND ${IS_LIVE} AND attribute_not_exists(slot) AND attribute_not_exists(queued)`,
            ExpressionAttributeNames: { "#state": "state" },
            ExpressionAttributeValues: { ":queued": place, ":epoch": epoch, ":beat": beat, ...LIVE },
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          },
        },
        {
          Update: {
            ...slotsKey(to),
            UpdateExpression: "ADD queued :one",
            ConditionExpression: `${IS_FULL} OR queued > :zero`,
            ExpressionAttributeValues: { ":one": 1, ":zero": 0, ":max": max },
          },
        },
        { Put: { TableName: table, Item: { pk: slotsPartition(to), sk: place, taskId } } },
      ]);
      if (refused === undefined) return "queued";
      const [first] = refused;
      if (first?.ok === true) return "room";
      const there = first?.item && toHead(first.item);
      return there?.queued === place && there.epoch === epoch && there.beat === beat ? "queued" : "stale";
    },

    async slots(runtime) {
      const { Item } = await client.send(new GetCommand({ ...slotsKey(runtime), ConsistentRead: true }));
      return slotsItem.parse(Item ?? {});
    },

    async nextWaiter(runtime, lastFrom) {
      // After all of the sender that was served last; from there on to the end, and then from the beginning.
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
        const { sk, taskId } = waitItem.parse(Items[0]);
        return { to: runtime, taskId, place: sk };
      }
      return undefined;
    },

    async dropWaiter({ to, taskId, place }) {
      await transact([
        {
          Delete: { ...placeKey(to, place), ConditionExpression: "attribute_exists(pk)" },
        },
        countDown(to),
        {
          ConditionCheck: {
            ...headKey(taskId),
            ConditionExpression: "attribute_not_exists(queued) OR queued <> :queued",
            ExpressionAttributeValues: { ":queued": place },
          },
        },
      ]);
    },

    async leave(held, update) {
      let believed = held;
      for (let turn = 1; turn <= MAX_TURNS; turn++) {
        const outcome = await tryToLeave(believed, update);
        if ("left" in outcome) return outcome;
        const { there } = outcome;
        const same =
          there === undefined || (there.slot === believed.slot && there.queued === believed.queued);
        if (same) return { left: false, waited: false };
        believed = there;
      }
      throw new Error(`the slot of task ${held.taskId} has changed hands ${MAX_TURNS} times meanwhile`);
    },
  };
}
