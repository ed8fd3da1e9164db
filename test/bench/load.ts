import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams } from "../../shared/nats/index.ts";
import { isTerminal, parseSubject, readEvent } from "../../shared/wire/index.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { inTime } from "../support/until.ts";

/** A task of one step, which tells of its progress or not. */
const oneStep = (tells: boolean) => ({ message: { parts: [{ data: { steps: 1, bytes: 100, tells } }] } });
const WITHIN_MS = 300_000;

/** What the sender of a task saw, in milliseconds since it began to publish it. */
export interface Seen {
  readonly accepted: number;
  /** The first progress; not a number if there was none. */
  readonly status: number;
  readonly result: number;
}

export interface Asking {
  /** Where the task goes; by default the agent that the load was started for. */
  readonly executor?: string;
  /** Whether the task tells of its progress. */
  readonly tells?: boolean;
}

interface Waiting {
  readonly since: number;
  accepted: number;
  status: number;
  readonly done: (seen: Seen) => void;
}

/** A running product, and a peer that gives it tasks of one step. */
export class Load {
  readonly sluice: Sluice;
  readonly #agent: string;
  readonly #waiting = new Map<string, Waiting>();
  #last = "";
  #revision = 2;

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
  async run(count: number, inFlight: number, asking: Asking = {}): Promise<Seen[]> {
    const all: Seen[] = [];
    let left = count;
    const lane = async () => {
      while (left-- > 0) all.push(await inTime("a task's result", this.one(asking), WITHIN_MS));
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return all;
  }

  /**
   * Publishes a task at each of these times, whether earlier ones are done or not, and waits for all results. What was
   * to be published and could not is late by that much: its time counts from when it was due.
   *
   * @param at milliseconds from now on, growing
   */
  async onSchedule(at: readonly number[], asking: Asking = {}): Promise<Seen[]> {
    const began = performance.now();
    const all: Promise<Seen>[] = [];
    for (const due of at) {
      const wait = began + due - performance.now();
      if (wait > 0) await sleep(wait);
      all.push(inTime("a task's result", this.one(asking, began + due), WITHIN_MS));
    }
    return await Promise.all(all);
  }

  /** Has a task done; gives its id. */
  async task(): Promise<string> {
    await this.run(1, 1);
    return this.#last;
  }

  /** Asks for the status of the task that was done last; gives how long the answer took, in milliseconds. */
  async control(): Promise<number> {
    const { peer } = this.sluice;
    const executor = `acme-${this.#agent}`;
    const answered = Promise.withResolvers<void>();
    const hearing = peer.nc.subscribe(`a2a.v1.event.${executor}.${peer.id}.${this.#last}.>`, {
      max: 1,
      callback: () => answered.resolve(),
    });
    const began = performance.now();
    await peer.control(executor, this.#last, "status", ++this.#revision);
    await inTime("a control's answer", answered.promise, WITHIN_MS);
    hearing.unsubscribe();
    return performance.now() - began;
  }

  /** Publishes a task and waits for its result. */
  async one({ executor = `acme-${this.#agent}`, tells = false }: Asking = {}, since = performance.now()) {
    const messageId = `msg_${crypto.randomUUID().replaceAll("-", "")}`;
    const seen = Promise.withResolvers<Seen>();
    const key = this.sluice.peer.taskId(executor, messageId);
    this.#waiting.set(key, { since, accepted: Number.NaN, status: Number.NaN, done: seen.resolve });
    const channelRef = executor.slice("acme-".length);
    await this.sluice.peer.ask(executor, { channelRef, a2a: oneStep(tells) }, { messageId });
    return await seen.promise;
  }

  #hear(subject: string, data: Uint8Array): void {
    const parsed = parseSubject(subject);
    const waiting = parsed?.kind === "event" ? this.#waiting.get(parsed.taskKey) : undefined;
    const read = waiting && readEvent(subject, data);
    if (parsed?.kind !== "event" || waiting === undefined || !read?.ok) return;
    const after = performance.now() - waiting.since;
    const { kind, state } = read.value;
    if (kind === "accepted") waiting.accepted = after;
    if (kind === "status" && Number.isNaN(waiting.status)) waiting.status = after;
    if (!isTerminal(state)) return;
    this.#waiting.delete(parsed.taskKey);
    this.#last = parsed.taskKey;
    waiting.done({ accepted: waiting.accepted, status: waiting.status, result: after });
  }
}
