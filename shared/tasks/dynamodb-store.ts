import { GetCommand, PutCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { throughConflicts } from "./conflicts.ts";
import { found, IS_LIVE, LIVE, toHead } from "./dynamodb-head.ts";
import { leave } from "./dynamodb-leave.ts";
import { dynamoSlots } from "./dynamodb-slots.ts";
import type { TableAccess } from "./dynamodb-transaction.ts";
import {
  CHILD_KEY,
  childKey,
  dueShard,
  entry,
  entryKey,
  HEAD_KEY,
  type Head,
  INPUT_KEY,
  parent,
} from "./items.ts";
import type { Store } from "./store.ts";

/** The name of the index over `dueAt`; in the stack `infra/storage.ts` declares it. */
const DUE_INDEX = "due";

function headItem(of: Head): Record<string, unknown> {
  const { taskId, ...rest } = of;
  const due = of.dueAt === undefined ? {} : { dueShard: dueShard(taskId) };
  return { pk: taskId, sk: HEAD_KEY, ...rest, ...due };
}

/**
 * The store over DynamoDB. The client must drop `undefined` values (`removeUndefinedValues`).
 *
 * @param options.table the table's name; its keys and index are in docs/table.md
 */
export function dynamoStore(options: TableAccess): Store {
  const { client, table, pause } = options;
  const key = (taskId: string, sk: string) => ({ TableName: table, Key: { pk: taskId, sk } });
  /** An update of a head, on which somebody's transaction may be under way. */
  const update = (input: ConstructorParameters<typeof UpdateCommand>[0]) =>
    throughConflicts(() => client.send(new UpdateCommand(input)), pause);

  return {
    ...dynamoSlots(options),

    async admit(of) {
      try {
        await client.send(
          new PutCommand({
            TableName: table,
            Item: headItem(of),
            ConditionExpression: "attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        );
        return { admitted: true };
      } catch (error) {
        const item = found(error);
        if (item === undefined) throw error;
        return { admitted: false, head: toHead(item) };
      }
    },

    async putInput(taskId, digest, payload, expiresAt) {
      await client.send(
        new PutCommand({
          TableName: table,
          Item: { pk: taskId, sk: `${INPUT_KEY}#${digest}`, payload, expiresAt },
        }),
      );
    },

    async input(taskId, digest) {
      const { Item } = await client.send(
        new GetCommand({ ...key(taskId, `${INPUT_KEY}#${digest}`), ConsistentRead: true }),
      );
      return typeof Item?.payload === "string" ? Item.payload : undefined;
    },

    async head(taskId) {
      const { Item } = await client.send(new GetCommand({ ...key(taskId, HEAD_KEY), ConsistentRead: true }));
      return Item === undefined ? undefined : toHead(Item);
    },

    async claim(hint, owner, dueAt) {
      // The first claim leaves the index as it is: it is the one that every task pays for.
      const again = hint.epoch > 0;
      try {
        const { Attributes } = await update({
          ...key(hint.taskId, HEAD_KEY),
          UpdateExpression: again
            ? "SET epoch = :next, #owner = :owner, #state = :working, dueAt = :dueAt, dueShard = :shard REMOVE waiting"
            : "SET epoch = :next, #owner = :owner, #state = :working",
          ConditionExpression: `epoch = :epoch AND beat = :beat AND ${IS_LIVE} AND attribute_not_exists(queued)`,
          ExpressionAttributeNames: { "#state": "state", "#owner": "owner" },
          ExpressionAttributeValues: {
            ":next": hint.epoch + 1,
            ":owner": owner,
            ":epoch": hint.epoch,
            ":beat": hint.beat,
            ...(again ? { ":dueAt": dueAt, ":shard": dueShard(hint.taskId) } : {}),
            ...LIVE,
          },
          ReturnValues: "ALL_NEW",
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        });
        return Attributes === undefined ? undefined : toHead(Attributes);
      } catch (error) {
        const item = found(error);
        if (item === undefined) return undefined;
        const there = toHead(item);
        // Our own write, whose answer was lost and which the client repeated.
        return there.owner === owner && there.epoch === hint.epoch + 1 ? there : undefined;
      }
    },

    async beat(taskId, epoch, { beat, running }) {
      try {
        await update({
          ...key(taskId, HEAD_KEY),
          UpdateExpression: `SET beat = :beat${running === undefined ? "" : ", running = :running"}`,
          ConditionExpression: `epoch = :epoch AND ${IS_LIVE}`,
          ExpressionAttributeNames: { "#state": "state" },
          ExpressionAttributeValues: {
            ":beat": beat,
            ":epoch": epoch,
            ...(running === undefined ? {} : { ":running": running }),
            ...LIVE,
          },
        });
        return true;
      } catch (error) {
        found(error);
        return false;
      }
    },

    async news(taskId, place) {
      try {
        const { Attributes } = await update({
          ...key(taskId, HEAD_KEY),
          UpdateExpression: "SET news = :place",
          ConditionExpression: "attribute_exists(pk) AND (attribute_not_exists(news) OR news < :place)",
          ExpressionAttributeValues: { ":place": place },
          ReturnValues: "ALL_NEW",
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        });
        return Attributes === undefined ? undefined : toHead(Attributes);
      } catch (error) {
        const item = found(error);
        return item === undefined ? undefined : toHead(item);
      }
    },

    suspend: (held, { epoch, beat, published, place, state, dueAt }) =>
      leave(options, held, {
        set: [
          "beat = :beat",
          "published = :published",
          "#state = :state",
          "dueAt = :dueAt",
          "dueShard = :shard",
          "waiting = :waiting",
          "calm = :epoch",
        ],
        remove: ["running", "seen"],
        condition: `epoch = :epoch AND ${IS_LIVE} AND (attribute_not_exists(news) OR news <= :place)`,
        names: { "#state": "state" },
        values: {
          ":epoch": epoch,
          ":beat": beat,
          ":published": published,
          ":place": place,
          ":state": state,
          ":dueAt": dueAt,
          ":shard": dueShard(held.taskId),
          ":waiting": true,
          ...LIVE,
        },
      }),

    async append(taskId, of, expiresAt) {
      try {
        await client.send(
          new PutCommand({
            TableName: table,
            Item: { pk: taskId, sk: entryKey(of.place), ...of, expiresAt },
            ConditionExpression: "attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        );
        return { stored: true };
      } catch (error) {
        const item = found(error);
        if (item === undefined) throw error;
        const there = entry().parse(item);
        return there.nonce === of.nonce ? { stored: true } : { stored: false, found: there };
      }
    },

    async entries(taskId, from) {
      const entries = [];
      let start: Record<string, unknown> | undefined;
      do {
        const page = await client.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
            ExpressionAttributeValues: { ":pk": taskId, ":from": entryKey(from), ":to": "e#~" },
            ConsistentRead: true,
            ExclusiveStartKey: start,
          }),
        );
        for (const item of page.Items ?? []) entries.push(entry().parse(item));
        start = page.LastEvaluatedKey;
      } while (start !== undefined);
      return entries;
    },

    async last(taskId) {
      const { Items } = await client.send(
        new QueryCommand({
          TableName: table,
          KeyConditionExpression: "pk = :pk AND begins_with(sk, :entries)",
          ExpressionAttributeValues: { ":pk": taskId, ":entries": "e#" },
          ConsistentRead: true,
          ScanIndexForward: false,
          Limit: 1,
        }),
      );
      return Items?.[0] === undefined ? undefined : entry().parse(Items[0]);
    },

    async settle(held, published, end) {
      const condition = "attribute_exists(pk) AND published <= :published";
      if (end !== undefined) {
        const { waited } = await leave(options, held, {
          set: ["published = :published", "#state = :state"],
          // `running` stays: it tells what the task ended without.
          remove: ["dueAt", "dueShard", "waiting"],
          condition,
          names: { "#state": "state" },
          values: { ":published": published, ":state": end },
        });
        return waited;
      }
      try {
        await update({
          ...key(held.taskId, HEAD_KEY),
          UpdateExpression: "SET published = :published",
          ConditionExpression: condition,
          ExpressionAttributeValues: { ":published": published },
        });
      } catch (error) {
        found(error);
      }
      return false;
    },

    async bindChild(child, { taskId, step }, expiresAt) {
      try {
        await client.send(
          new PutCommand({
            TableName: table,
            Item: { pk: childKey(child), sk: CHILD_KEY, taskId, step, expiresAt },
            ConditionExpression: "attribute_not_exists(pk)",
          }),
        );
      } catch (error) {
        found(error);
      }
    },

    async parentOf(child) {
      const { Item } = await client.send(
        new GetCommand({ ...key(childKey(child), CHILD_KEY), ConsistentRead: true }),
      );
      return Item === undefined ? undefined : parent().parse(Item);
    },

    async *due(shard, until) {
      let start: Record<string, unknown> | undefined;
      do {
        const page = await client.send(
          new QueryCommand({
            TableName: table,
            IndexName: DUE_INDEX,
            KeyConditionExpression: "dueShard = :shard AND dueAt <= :until",
            ExpressionAttributeValues: { ":shard": shard, ":until": until },
            ExclusiveStartKey: start,
          }),
        );
        for (const item of page.Items ?? []) yield String(item.pk);
        start = page.LastEvaluatedKey;
      } while (start !== undefined);
    },

    async postpone(of, dueAt, seen) {
      try {
        await update({
          ...key(of.taskId, HEAD_KEY),
          UpdateExpression: "SET dueAt = :dueAt, dueShard = :shard, seen = :seen",
          ConditionExpression: "dueAt = :before",
          ExpressionAttributeValues: {
            ":dueAt": dueAt,
            ":shard": dueShard(of.taskId),
            ":seen": seen,
            ":before": of.dueAt ?? 0,
          },
        });
        return true;
      } catch (error) {
        found(error);
        return false;
      }
    },
  };
}
