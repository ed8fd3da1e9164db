import { setTimeout as sleep } from "node:timers/promises";
import { DeliverPolicy, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { brokenRules } from "./peer-rules.ts";

const PREFIX = "$KV.A2A_PEERS.";
const shown = z.object({
  card: z.object({ skills: z.array(z.object({ id: z.string() })).nullish() }),
  extendedCard: z
    .object({
      channel_ref: z.string().default(""),
      runtime: z.string().default(""),
      discord_guild_id: z.string().default(""),
    })
    .prefault({}),
  expiresAt: z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
});
type Shown = z.infer<typeof shown>;

/** Whom a peer would give a task, and how it would address it. */
export interface Listed {
  readonly runtime: string;
  readonly channelRef: string;
  readonly skillId: string;
}

/**
 * A peer that follows the bucket as those do that exist: it watches all keys from the beginning, and the first record
 * that it cannot read ends the watch. It waits, begins again, and comes upon the same record: until that is gone it is
 * blind to all that lies behind.
 */
export class Follower {
  /** How often a record has ended the watch. */
  stumbles = 0;
  readonly #nc: NatsConnection;
  readonly #retryMs: number;
  readonly #staleMs: number;
  readonly #seen = new Map<string, { readonly record: Shown; readonly at: number }>();
  #stopped = false;
  #stop: () => void = () => undefined;
  readonly #running: Promise<void>;

  /** @param scale how many times faster all goes: those that exist wait 5 s, and forget whom they have not seen for 90 */
  constructor(nc: NatsConnection, scale: number) {
    this.#nc = nc;
    this.#retryMs = 5_000 / scale;
    this.#staleMs = 90_000 / scale;
    this.#running = this.#follow();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stop();
    await this.#running;
  }

  /** The agents of a guild that it shows to people. */
  listed(guild: string): Listed[] {
    const now = Date.now();
    return Array.from(this.#seen).flatMap(([runtime, { record, at }]) => {
      const { channel_ref: channelRef, runtime: kind, discord_guild_id } = record.extendedCard;
      const fresh = now - at <= this.#staleMs && record.expiresAt > now;
      const skillId = taskSkill(record, channelRef);
      if (!fresh || !["channel", "thread"].includes(kind) || discord_guild_id !== guild) return [];
      return channelRef === "" || skillId === undefined ? [] : [{ runtime, channelRef, skillId }];
    });
  }

  async #follow(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#watch();
      } catch {
        this.stumbles++;
      }
      if (!this.#stopped) await sleep(this.#retryMs);
    }
  }

  async #watch(): Promise<void> {
    const consumer = await jetstream(this.#nc).consumers.get("KV_A2A_PEERS", {
      deliver_policy: DeliverPolicy.LastPerSubject,
      filter_subjects: `${PREFIX}>`,
    });
    const messages = await consumer.consume();
    this.#stop = () => messages.stop();
    try {
      for await (const message of messages) this.#take(message);
    } finally {
      messages.stop();
    }
  }

  #take(message: JsMsg): void {
    const key = message.subject.slice(PREFIX.length);
    if (message.headers?.get("KV-Operation")) {
      this.#seen.delete(key);
      return;
    }
    const [broken] = brokenRules(key, message.data);
    if (broken !== undefined) throw new Error(`${key}: ${broken}`);
    this.#seen.set(key, { record: shown.parse(message.json()), at: Date.now() });
  }
}

/** What it asks for when people name no skill. */
function taskSkill({ card }: Shown, channelRef: string): string | undefined {
  const ids = (card.skills ?? []).map(({ id }) => id);
  const usual = [`${channelRef}/task`, `${channelRef}/general_task`].find((id) => ids.includes(id));
  return usual ?? ids.find((id) => /\/(task|general_task)$/.test(id));
}
