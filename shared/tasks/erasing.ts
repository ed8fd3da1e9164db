import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "../zod.ts";
import type { TableAccess } from "./dynamodb-transaction.ts";
import { CHILD_KEY, childKey, type Entry, entryKey, HEAD_KEY, type Head, INPUT_KEY } from "./items.ts";
import type { ChildKey } from "./store.ts";

/** What takes the contents out of a task that is over; each may be repeated (docs/table.md, erasing). */
export interface Eraser {
  /**
   * Takes out of an entry what was done and said. It stays in its place, so that nobody else can take that.
   *
   * @param left what is to be left of an end: no message, and an event that tells nothing
   */
  emptyEntry(taskId: string, place: number, left?: Pick<Entry, "end" | "events">): Promise<void>;
  /** Deletes the note which step has handed a task on: a branch's name, and so its steps', may come of the payload. */
  deleteChild(child: ChildKey): Promise<void>;
  /** Deletes the payload, and every other that has come under the task's id. */
  deleteInputs(taskId: string): Promise<void>;
  /**
   * Takes the input out of the head, and notes by whom and when all this was done.
   *
   * @returns false when the task is not over, or not known
   */
  markErased(head: Pick<Head, "taskId" | "reject">, erased: NonNullable<Head["erased"]>): Promise<boolean>;
}

const CONTENTS = ["steps", "opens", "answer", "heard", "events"];
const ENDED = {
  ":completed": "TASK_STATE_COMPLETED",
  ":failed": "TASK_STATE_FAILED",
  ":canceled": "TASK_STATE_CANCELED",
  ":rejected": "TASK_STATE_REJECTED",
};
/** Sorts after every input: digests are hex. */
const INPUTS_END = `${INPUT_KEY}#~`;
const keyed = z.object({ sk: z.string() });

/** An eraser over DynamoDB. */
export function dynamoEraser({ client, table }: Pick<TableAccess, "client" | "table">): Eraser {
  const key = (taskId: string, sk: string) => ({ TableName: table, Key: { pk: taskId, sk } });
  return {
    async emptyEntry(taskId, place, left) {
      const removed = CONTENTS.filter((name) => left === undefined || name !== "events");
      const names = left === undefined ? CONTENTS : [...CONTENTS, "end"];
      const update = `REMOVE ${removed.map((name) => `#${name}`).join(", ")}`;
      await client.send(
        new UpdateCommand({
          ...key(taskId, entryKey(place)),
          UpdateExpression: left === undefined ? update : `SET #end = :end, #events = :events ${update}`,
          ConditionExpression: "attribute_exists(pk)",
          ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
          ...(left && { ExpressionAttributeValues: { ":end": left.end, ":events": left.events ?? [] } }),
        }),
      );
    },

    async deleteChild(child) {
      await client.send(new DeleteCommand(key(childKey(child), CHILD_KEY)));
    },

    async deleteInputs(taskId) {
      const { Items = [], LastEvaluatedKey } = await client.send(
        new QueryCommand({
          TableName: table,
          KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
          ExpressionAttributeValues: { ":pk": taskId, ":from": `${INPUT_KEY}#`, ":to": INPUTS_END },
          ProjectionExpression: "sk",
          ConsistentRead: true,
        }),
      );
      for (const item of Items) await client.send(new DeleteCommand(key(taskId, keyed.parse(item).sk)));
      // What is deleted is not found again.
      if (LastEvaluatedKey !== undefined) await this.deleteInputs(taskId);
    },

    async markErased({ taskId, reject }, erased) {
      const emptied = reject && { code: reject.code, message: reject.code };
      const set = ["erased = :erased", ...(emptied ? ["#reject = :reject"] : [])];
      try {
        await client.send(
          new UpdateCommand({
            ...key(taskId, HEAD_KEY),
            UpdateExpression: `SET ${set.join(", ")} REMOVE #input, #running`,
            ConditionExpression: `#state IN (${Object.keys(ENDED).join(", ")})`,
            ExpressionAttributeNames: {
              "#state": "state",
              "#input": "input",
              "#running": "running",
              ...(emptied && { "#reject": "reject" }),
            },
            ExpressionAttributeValues: {
              ...ENDED,
              ":erased": erased,
              ...(emptied && { ":reject": emptied }),
            },
          }),
        );
        return true;
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return false;
        throw error;
      }
    },
  };
}
