import {
  type ConsumerMessages,
  type JsMsg,
  jetstream,
  jetstreamManager,
  type OrderedConsumerOptions,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { refusalOf } from "../shared/nats/refusal.ts";
import { EVENTS_STREAM } from "../shared/nats/streams.ts";
import { readEvent, type TaskEvent, taskIdOf } from "../shared/wire/index.ts";

/** Messages of a stream as an ordered consumer reads them: no durable, no acknowledgements, nobody else's state. */
export interface Feed extends AsyncDisposable {
  readonly messages: ConsumerMessages;
  /** How many messages there were when it was opened. */
  readonly pending: number;
}

/**
 * Opens a stream for reading. The server knows of it when this returns: what is stored from then on is not missed.
 * After a lost connection it goes on where it was.
 *
 * @throws JetStreamApiError when the stream does not exist
 */
export async function openFeed(
  nc: NatsConnection,
  stream: string,
  options: Partial<OrderedConsumerOptions>,
): Promise<Feed> {
  const { filter_subjects: filters } = options;
  // One filter in a list, too: the subject by which a consumer is made has neither its name nor its filter then, so
  // that an operator can allow it without allowing durables to be changed (docs/nats.md).
  const consumer = await jetstream(nc).consumers.get(stream, {
    ...options,
    ...(typeof filters === "string" && { filter_subjects: [filters] }),
  });
  const { num_pending: pending } = await consumer.info(true);
  const messages = await consumer.consume({ max_messages: 200, expires: 10_000, idle_heartbeat: 2_000 });
  void stopWhenRefused(nc, stream, messages);
  return {
    messages,
    pending,
    async [Symbol.asyncDispose]() {
      if (nc.isClosed()) return;
      // Not `close`: it waits for an iteration's end, and there may have been none.
      messages.stop();
      // It would end by itself after five minutes of silence.
      await consumer.delete().catch(() => {});
    },
  };
}

/** A pull that the server does not allow is answered by nobody: the reading ends with that as its error. */
async function stopWhenRefused(
  nc: NatsConnection,
  stream: string,
  messages: ConsumerMessages,
): Promise<void> {
  const pulls = `$JS.API.CONSUMER.MSG.NEXT.${stream}.`;
  for await (const status of nc.status())
    if (status.type === "error" && refusalOf(status.error)?.subject.startsWith(pulls))
      messages.stop(status.error);
}

/** Events from now on; `filters` are subjects of the stream of events. */
export async function openEvents(nc: NatsConnection, filters: readonly string[]): Promise<Feed> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const { state } = await jsm.streams.info(EVENTS_STREAM);
  // By sequence rather than "new", so that a consumer made anew after a lost connection starts here too.
  return openFeed(nc, EVENTS_STREAM, { filter_subjects: [...filters], opt_start_seq: state.last_seq + 1 });
}

/** Goes through a feed's events as they come. What is no event of the wire is passed over. */
export async function* eventsOf(feed: Feed): AsyncGenerator<TaskEvent> {
  for await (const message of feed.messages) {
    const read = readEvent(message.subject, message.data);
    if (read.ok) yield read.value;
  }
}

/** A message of the past. */
export interface Past {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: JsMsg["headers"];
  /** When the stream stored it. */
  readonly at: Date;
}

/**
 * What a stream holds now.
 *
 * @param most how many messages are read; of more, the last are not
 */
export async function readAll(
  nc: NatsConnection,
  stream: string,
  options: Partial<OrderedConsumerOptions>,
  most = Number.POSITIVE_INFINITY,
): Promise<Past[]> {
  await using feed = await openFeed(nc, stream, options);
  const all: Past[] = [];
  if (feed.pending === 0) return all;
  for await (const { subject, data: body, headers, info, time } of feed.messages) {
    all.push({ subject, body, headers, at: time });
    if (info.pending === 0 || all.length >= Math.min(feed.pending, most)) break;
  }
  return all;
}

/** An event and when the stream stored it. */
export interface Seen {
  readonly event: TaskEvent;
  readonly at: Date;
}

/** The events that the stream holds now, the oldest first. */
export async function readEvents(
  nc: NatsConnection,
  filters: readonly string[],
  since?: Date,
): Promise<Seen[]> {
  const past = await readAll(nc, EVENTS_STREAM, {
    filter_subjects: [...filters],
    ...(since !== undefined && { opt_start_time: since.toISOString() }),
  });
  return past.flatMap(({ subject, body, at }) => {
    const read = readEvent(subject, body);
    return read.ok ? [{ event: read.value, at }] : [];
  });
}

/**
 * One task's events. Those of a task that was never accepted stand under its message's id; it is found by its own id
 * as well, which is what its sender was shown.
 *
 * @param key the task's id, or `msg_` and its message's id
 * @param delegator whose task it is; anybody's without it
 */
export async function readEventsOfTask(nc: NatsConnection, key: string, delegator = "*"): Promise<Seen[]> {
  const seen = await readEvents(nc, [`a2a.v1.event.*.${delegator}.${key}.>`]);
  if (seen.length > 0) return seen;
  const rejected = await readEvents(nc, [`a2a.v1.event.*.${delegator}.*.rejected`]);
  return rejected.filter(({ event: { from, to, messageId } }) => taskIdOf(to, from, messageId) === key);
}
