import { DeleteCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { readItems } from "../tasks/dynamodb-batch.ts";
import type { TableAccess } from "../tasks/dynamodb-transaction.ts";
import { HEAD_KEY } from "../tasks/items.ts";
import { isTerminal, taskState } from "../wire/index.ts";
import * as z from "../zod.ts";

/** That a task was admitted while its agent had a quota. */
export interface Note {
  readonly from: string;
  readonly taskId: string;
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** When the note may be deleted, in seconds since 1970: with the task. */
  readonly expiresAt: number;
}

/** The notes of an agent's tasks, ordered by sender (docs/table.md). */
export interface QuotaNotes {
  put(runtime: string, note: Note): Promise<void>;
  /**
   * Some of an agent's notes.
   *
   * @param limit how many at the most
   * @param from the sender, unless it is all the same
   */
  some(runtime: string, limit: number, from?: string): Promise<Note[]>;
  forget(runtime: string, note: Note): Promise<void>;
  /** Whether tasks are open; those without a head are left out. */
  openOf(taskIds: readonly string[]): Promise<ReadonlyMap<string, boolean>>;
}

const note = z.whenUsed(() =>
  z.object({ from: z.string(), taskId: z.string(), at: z.number(), expiresAt: z.number() }),
);
const headState = z.whenUsed(() => z.object({ pk: z.string(), state: taskState() }));

function key({ from, taskId }: Pick<Note, "from" | "taskId">): string {
  return `${from}#${taskId}`;
}

/** The notes over DynamoDB, in a partition of the agent's own. */
export function quotaNotes(access: TableAccess): QuotaNotes {
  const { client, table } = access;
  const partition = (runtime: string) => `quota#${runtime}`;
  return {
    async put(runtime, of) {
      const Item = { pk: partition(runtime), sk: key(of), ...of };
      await client.send(new PutCommand({ TableName: table, Item }));
    },

    async some(runtime, limit, from) {
      // Ids are ASCII (docs/wire.md, ids): `~` sorts after them all.
      const [first, last] = from === undefined ? ["!", "~"] : [`${from}#`, `${from}#~`];
      const notes: Note[] = [];
      let start: Record<string, unknown> | undefined;
      do {
        const page = await client.send(
          new QueryCommand({
            TableName: table,
            KeyConditionExpression: "pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues: { ":pk": partition(runtime), ":first": first, ":last": last },
            ConsistentRead: true,
            Limit: limit - notes.length,
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
          }),
        );
        notes.push(...(page.Items ?? []).map((item) => note().parse(item)));
        start = page.LastEvaluatedKey;
      } while (start !== undefined && notes.length < limit);
      return notes;
    },

    async forget(runtime, of) {
      await client.send(
        new DeleteCommand({ TableName: table, Key: { pk: partition(runtime), sk: key(of) } }),
      );
    },

    async openOf(taskIds) {
      const heads = await readItems(
        access,
        taskIds.map((pk) => ({ pk, sk: HEAD_KEY })),
      );
      return new Map(
        heads.map((item) => {
          const { pk, state } = headState().parse(item);
          return [pk, !isTerminal(state)];
        }),
      );
    },
  };
}
