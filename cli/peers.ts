import { type ConsumerInfo, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { PEERS_STREAM, PEERS_SUBJECTS } from "../shared/cards/bucket-facts.ts";
import { type LookedThrough, lookThrough } from "../shared/cards/look-through.ts";
import { readLastOn } from "../shared/nats/stream-reads.ts";
import { TASKS_STREAM, tasksConsumer } from "../shared/nats/streams.ts";

/** What we show of a card; whatever else it holds does not matter here. */
const cardRecord = z.looseObject({
  agentId: z.string().min(1),
  card: z.looseObject({
    description: z.string().catch(""),
    skills: z.array(z.looseObject({ id: z.string() })).catch([]),
  }),
  extendedCard: z
    .looseObject({
      channel_ref: z.string().optional().catch(undefined),
      display_name: z.string().optional().catch(undefined),
    })
    .nullish(),
  expiresAt: z.iso.datetime({ offset: true }).optional().catch(undefined),
});

/** An agent's card as far as the command uses it. */
export interface Card {
  readonly agentId: string;
  readonly channelRef?: string;
  /** What people call it. */
  readonly displayName?: string;
  readonly description: string;
  readonly skills: readonly string[];
  /** Its time is over, or it lists no skills, behind which nobody works. */
  readonly stale: boolean;
}

/** The durable consumer by which a runtime gets its tasks. */
export interface Durable {
  readonly runtime: string;
  /** Pulls that wait for a task: 0 means that nobody listens right now. */
  readonly pulling: number;
  /** Tasks that are not delivered yet. */
  readonly waiting: number;
  /** Tasks that are delivered but not acknowledged. */
  readonly unacknowledged: number;
}

function readCard(body: Uint8Array, now: number): Card | null {
  const parsed = cardRecord.safeParse(parseJson(body));
  if (!parsed.success) return null;
  const { agentId, card, extendedCard, expiresAt } = parsed.data;
  const skills = card.skills.map(({ id }) => id);
  return {
    agentId,
    description: card.description,
    skills,
    stale: skills.length === 0 || (expiresAt !== undefined && Date.parse(expiresAt) < now),
    ...(extendedCard?.channel_ref && { channelRef: extendedCard.channel_ref }),
    ...(extendedCard?.display_name && { displayName: extendedCard.display_name }),
  };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

/** How long a server far away may take to send what is read of the bucket, in milliseconds. */
const PATIENCE_MS = 30_000;

/** What is read of the bucket of cards. */
export type Bucket = Pick<LookedThrough, "entries" | "lately">;

/**
 * The keys of the bucket of cards as they are now, taken away or not; none when there is no bucket, or we may not read it.
 * It is read by the same code as by the functions, and so to the same bound.
 *
 * @param keys which ones. Default: all
 */
export async function readBucket(
  nc: NatsConnection,
  keys: readonly string[] = [">"],
  now = Date.now(),
): Promise<Bucket> {
  const nothing = { entries: [], lately: false };
  if (keys.length === 0) return nothing;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const of = { keys, now: () => now, patienceMs: PATIENCE_MS };
  const { entries, lately } = (await orNothing(lookThrough(jetstream(nc), jsm, of))) ?? nothing;
  // The bucket may keep a history; the newest record of an agent counts.
  return { entries: [...new Map(entries.map((entry) => [entry.key, entry])).values()], lately };
}

/** The cards in the bucket. */
export async function readCards(nc: NatsConnection, now = Date.now()): Promise<Card[]> {
  const { entries } = await readBucket(nc, undefined, now);
  const cards = entries.map(({ bytes }) => bytes && readCard(bytes, now));
  return cards.filter((card) => card !== null && card !== undefined);
}

/** The card of one agent. */
export async function findCard(nc: NatsConnection, agentId: string, now = Date.now()): Promise<Card | null> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const record = await orNothing(readLastOn(jsm, PEERS_STREAM, `${PEERS_SUBJECTS}${agentId}`));
  return record === null ? null : readCard(record.body, now);
}

/** All runtimes for which somebody ever made a durable consumer of tasks; empty when we may not list them. */
export async function readDurables(nc: NatsConnection): Promise<Durable[]> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const durables: Durable[] = [];
  const prefix = tasksConsumer("");
  await orNothing(
    (async () => {
      for await (const { name, num_waiting, num_pending, num_ack_pending } of jsm.consumers.list(
        TASKS_STREAM,
      ))
        if (name.startsWith(prefix))
          durables.push({
            runtime: name.slice(prefix.length),
            pulling: num_waiting,
            waiting: num_pending,
            unacknowledged: num_ack_pending,
          });
    })(),
  );
  return durables;
}

/** Whether somebody ever made a durable consumer for a runtime's tasks. */
export async function hasDurable(nc: NatsConnection, runtime: string): Promise<boolean> {
  return (await consumerOf(nc, runtime)) !== null;
}

/** Whether somebody waits for a runtime's tasks right now. */
export async function isListenedFor(nc: NatsConnection, runtime: string): Promise<boolean> {
  return ((await consumerOf(nc, runtime))?.num_waiting ?? 0) > 0;
}

async function consumerOf(nc: NatsConnection, runtime: string): Promise<ConsumerInfo | null> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  return await orNothing(jsm.consumers.info(TASKS_STREAM, tasksConsumer(runtime)));
}

/** What the server says, or null when it says that there is none. */
async function orNothing<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof JetStreamApiError) return null;
    throw error;
  }
}
