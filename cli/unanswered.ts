import type { NatsConnection } from "@nats-io/transport-node";
import { TASKS_STREAM } from "../shared/nats/streams.ts";
import { parseSubject, taskIdOf } from "../shared/wire/index.ts";
import { readAll, type Seen } from "./events.ts";
import { meant } from "./resolve.ts";

/** A task that was sent, and of which nobody has said anything yet. */
export interface Unanswered {
  readonly task: string;
  readonly executor: string;
  readonly delegator: string;
  readonly updatedAt: Date;
}

/** The tasks that were sent since a time and of which none of the events tells, found by their subjects alone. */
export async function readUnanswered(
  nc: NatsConnection,
  { from, since, seen }: { readonly from?: string; readonly since: Date; readonly seen: readonly Seen[] },
): Promise<Unanswered[]> {
  const sent = await readAll(nc, TASKS_STREAM, {
    filter_subjects: `a2a.v1.task.${from ?? "*"}.>`,
    opt_start_time: since.toISOString(),
    headers_only: true,
  });
  return unanswered(sent, seen);
}

/**
 * The one task without any event that a person means by its id, or by how that begins.
 *
 * @throws CliError `usage` when several begin so
 */
export async function findUnanswered(
  nc: NatsConnection,
  id: string,
  of: { readonly from?: string; readonly since: Date },
): Promise<Unanswered | undefined> {
  const all = await readUnanswered(nc, { ...of, seen: [] });
  const task = meant(
    id,
    all.map((one) => one.task),
  );
  return all.find((one) => one.task === task);
}

/** Tasks of which no event tells, found by their subjects alone. */
export function unanswered(
  sent: readonly { readonly subject: string; readonly at: Date }[],
  seen: readonly Seen[],
): Unanswered[] {
  const known = new Set(seen.flatMap(({ event }) => [event.taskKey, `${event.kind}:${event.messageId}`]));
  return sent.flatMap(({ subject, at }) => {
    const parsed = parseSubject(subject);
    if (parsed?.kind !== "task") return [];
    const { from: delegator, to: executor, messageId } = parsed;
    const task = taskIdOf(delegator, executor, messageId);
    const keys = [task, `msg_${messageId}`, `accepted:${messageId}`];
    return keys.some((key) => known.has(key)) ? [] : [{ task, executor, delegator, updatedAt: at }];
  });
}
