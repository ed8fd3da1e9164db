import type { SQSEvent, SQSRecord } from "aws-lambda";
import { forwarded } from "../../shared/tasks/messages.ts";
import * as z from "../../shared/zod.ts";
import type { eachRecord } from "../batch.ts";

const position = z.whenUsed(() => z.pick(forwarded(), { seq: true, subject: true }));

/**
 * The order of its stream, and what it speaks of: the executor's task. A record that is none of the bridge's has a
 * place of its own: whoever takes it finds out, and the others of its batch do not suffer for it.
 */
function positionOf({ body, messageId }: SQSRecord): { readonly seq: number; readonly task: string } {
  try {
    const { seq, subject } = position().parse(JSON.parse(body));
    return { seq, task: subject.slice(0, subject.lastIndexOf(".")) };
  } catch {
    return { seq: 0, task: messageId };
  }
}

type Take = Parameters<typeof eachRecord>[2];

/**
 * Puts the records of a batch into the order of their stream, and lets those of one task be taken one after the other:
 * once a task's end is known nothing is added, and some executors tell of their artifacts in events of their own alone.
 *
 * @param take takes one record
 * @returns the batch in order, and what takes its records, each when those before it of the same task are done
 */
export function inOrder(event: SQSEvent, take: Take): { readonly event: SQSEvent; readonly take: Take } {
  const positions = new Map(event.Records.map((record) => [record, positionOf(record)]));
  const Records = [...event.Records].sort(
    (a, b) => (positions.get(a)?.seq ?? 0) - (positions.get(b)?.seq ?? 0),
  );
  const before = new Map<string, Promise<void>>();
  return {
    event: { ...event, Records },
    take(record, later) {
      const task = positions.get(record)?.task ?? "";
      const taken = (before.get(task) ?? Promise.resolve()).then(() => take(record, later));
      // What goes wrong with one is not the next one's trouble.
      before.set(
        task,
        taken.catch(() => {}),
      );
      return taken;
    },
  };
}
