import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { deleteObject } from "../../shared/nats/objects.ts";
import type { Head } from "../../shared/tasks/items.ts";
import { taskSubject } from "../../shared/wire/subjects.ts";

/**
 * Deletes artifacts from the object store.
 *
 * @returns how many were there
 */
export async function deleteObjects(nc: NatsConnection, keys: readonly string[]): Promise<number> {
  let deleted = 0;
  for (const key of keys) if (await deleteObject(nc, key)) deleted++;
  return deleted;
}

/**
 * Deletes the messages of a task from the streams: what was asked, what was told, and what it was told.
 *
 * @returns how many there were
 */
export async function purgeMessages(
  nc: NatsConnection,
  { from, to, messageId, taskId }: Pick<Head, "from" | "to" | "messageId" | "taskId">,
): Promise<number> {
  const jsm = await jetstreamManager(nc);
  const subjects = [
    ["A2A_TASKS", taskSubject(from, to, messageId)],
    ["A2A_CONTROLS", `a2a.v1.control.${from}.${to}.${taskId}.*`],
    ["A2A_EVENTS", `a2a.v1.event.${to}.${from}.${taskId}.*`],
    ["A2A_EVENTS", `a2a.v1.event.${to}.${from}.msg_${messageId}.*`],
  ] as const;
  let purged = 0;
  for (const [stream, filter] of subjects) purged += (await jsm.streams.purge(stream, { filter })).purged;
  return purged;
}
