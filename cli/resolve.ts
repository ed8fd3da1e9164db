import type { NatsConnection } from "@nats-io/transport-node";
import { EVENTS_STREAM } from "../shared/nats/streams.ts";
import { parseSubject, taskIdOf } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import { readAll } from "./events.ts";
import { cleanLine } from "./text.ts";

/** How far back the beginning of an id is looked for. */
const HOURS = 24;
const MAX_LISTED = 5;
/** Ids that our executors choose (docs/wire.md, ids): nothing can follow. */
const WHOLE = /^task_[0-9a-f]{24}$/;
/** What the key of a task that was rejected begins with; its message's id follows. */
const OF_MESSAGE = "msg_";

/**
 * The task that a person means by the beginning of its id, with or without `task_`. A text that begins no recent
 * task's id is taken as it is.
 *
 * @throws CliError `usage` when several recent tasks begin so
 */
export async function resolveTask(nc: NatsConnection, text: string): Promise<string> {
  if (WHOLE.test(text)) return text;
  const past = await readAll(nc, EVENTS_STREAM, {
    filter_subjects: "a2a.v1.event.>",
    opt_start_time: new Date(Date.now() - HOURS * 3_600_000).toISOString(),
    headers_only: true,
  });
  return meant(
    text,
    past.flatMap(({ subject }) => keysOf(subject)),
  );
}

/**
 * What an event's task may be called by, as its subject tells: a task that was rejected is known there by its message
 * (docs/wire.md, ids), and to a person by the id that it would have had.
 */
export function keysOf(subject: string): string[] {
  const parsed = parseSubject(subject);
  if (parsed?.kind !== "event") return [];
  const { from, to, taskKey, event } = parsed;
  return event === "rejected" && taskKey.startsWith(OF_MESSAGE)
    ? [taskKey, taskIdOf(to, from, taskKey.slice(OF_MESSAGE.length))]
    : [taskKey];
}

/** @param keys the recent tasks' */
export function meant(text: string, keys: readonly string[]): string {
  if (keys.includes(text)) return text;
  const found = [
    ...new Set(keys.filter((key) => key.startsWith(text) || key.startsWith(`task_${text}`))),
  ].sort();
  if (found.length <= 1) return found[0] ?? text;
  const listed = found
    .slice(0, MAX_LISTED)
    .map((key) => cleanLine(key))
    .join(", ");
  const more = found.length > MAX_LISTED ? `, and ${found.length - MAX_LISTED} more` : "";
  throw new CliError(EXIT.usage, `task ${text}: several begin so: ${listed}${more}`);
}
