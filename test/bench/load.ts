import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams } from "../../shared/nats/index.ts";
import { isTerminal, parseSubject, readEvent } from "../../shared/wire/index.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { inTime } from "../support/until.ts";

/** A task of one step. */
const ONE_STEP = { message: { parts: [{ data: { steps: 1, bytes: 100 } }] } };
const WITHIN_MS = 300_000;

/** What the sender of a task saw, in milliseconds since it had published. */
export interface Seen {
  readonly accepted: number;
  readonly result: number;
}

interface Waiting {
  readonly publishedAt: number;
  accepted: number;
  readonly done: (seen: Seen) => void;
}

/** A running product, and a peer that gives it tasks of one step. */
export class Load {
  readonly sluice: Sluice;
  readonly #agent: string;
  readonly #waiting = new Map<string, Waiting>();

  /**
   * @param agent one of the counted agents of `test/fixtures/deployment`
   * @param options the host's; in real time unless they say otherwise
   */
  static async start(agent: string, options: Parameters<typeof startSluice>[0] = {}): Promise<Load> {
    const sluice = await startSluice({ timeScale: 1, ...options });
    await ensureStreams(await jetstreamManager(sluice.peer.nc));
    return new Load(agent, sluice);
  }

  private constructor(agent: string, sluice: Sluice) {
    this.#agent = agent;
    this.sluice = sluice;
    const { peer } = sluice;
    // As events are published, before the stream confirms them to their publisher.
    peer.nc.subscribe(`a2a.v1.event.*.${peer.id}.>`, {
      callback: (_error, { subject, data }) => this.#hear(subject, data),
    });
  }

  /** Publishes tasks, so many under way at a time, and waits for all results. */
  async run(count: number, inFlight: number): Promise<Seen[]> {
    const all: Seen[] = [];
    let left = count;
    const lane = async () => {
      while (left-- > 0) all.push(await inTime("a task's result", this.#one(), WITHIN_MS));
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return all;
  }

  async #one(): Promise<Seen> {
    const messageId = `msg_${crypto.randomUUID().replaceAll("-", "")}`;
    const seen = Promise.withResolvers<Seen>();
    const executor = `acme-${this.#agent}`;
    const key = this.sluice.peer.taskId(executor, messageId);
    this.#waiting.set(key, { publishedAt: performance.now(), accepted: Number.NaN, done: seen.resolve });
    await this.sluice.peer.ask(executor, { channelRef: this.#agent, a2a: ONE_STEP }, { messageId });
    return await seen.promise;
  }

  #hear(subject: string, data: Uint8Array): void {
    const parsed = parseSubject(subject);
    const waiting = parsed?.kind === "event" ? this.#waiting.get(parsed.taskKey) : undefined;
    const read = waiting && readEvent(subject, data);
    if (parsed?.kind !== "event" || waiting === undefined || !read?.ok) return;
    const after = performance.now() - waiting.publishedAt;
    if (read.value.kind === "accepted") waiting.accepted = after;
    if (!isTerminal(read.value.state)) return;
    this.#waiting.delete(parsed.taskKey);
    waiting.done({ accepted: waiting.accepted, result: after });
  }
}
