import { setTimeout as wait } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { fold } from "../../../shared/tasks/fold.ts";
import { isTerminal } from "../../../shared/wire/index.ts";
import type { RealParts } from "./parts.ts";
import type { Given } from "./peer-book.ts";

const PAUSE_MS = 1_000;
const STREAMS = ["A2A_TASKS", "A2A_CONTROLS", "A2A_EVENTS"];

/** What is still to be done. */
export interface Left {
  /** Tasks without an end that wait for nobody. */
  readonly open: readonly string[];
  readonly due: number;
  readonly queues: number;
  readonly consumers: number;
}

export function isNothing({ open, due, queues, consumers }: Left): boolean {
  return open.length + due + queues + consumers === 0;
}

/** Waits until nothing is left to be done, but not for ever; gives what is left. */
export async function settle(
  look: () => Promise<Left>,
  { withinMs, say }: { withinMs: number; say: (line: string) => void },
): Promise<Left> {
  let quiet = 0;
  let said = "";
  for (const end = Date.now() + withinMs; ; await wait(PAUSE_MS)) {
    const left = await look().catch((): Left => ({ open: ["unknown"], due: 0, queues: 0, consumers: 0 }));
    const saying = `${left.open.length} open, ${left.due} due, ${left.queues} in queues, ${left.consumers} in JetStream`;
    if (saying !== said) say(`  ${saying}`);
    said = saying;
    quiet = isNothing(left) ? quiet + 1 : 0;
    // Twice in a row: something may have been on its way from one part to another.
    if (quiet === 2 || Date.now() > end) return left;
  }
}

/** Looks at what is left to be done with what a peer has given. */
export class Rest {
  readonly #nc: NatsConnection;
  readonly #given: readonly Given[];
  /** Tasks that are over: they are not looked at again. */
  readonly #over = new Set<string>();

  constructor(nc: NatsConnection, given: readonly Given[]) {
    this.#nc = nc;
    this.#given = given;
  }

  /** @param queuesOf tells the queues that must be empty */
  async look(parts: RealParts, queuesOf: (name: string) => boolean): Promise<Left> {
    const open: string[] = [];
    const waiting = new Set<string>();
    for (const { taskId, spec } of this.#given) {
      if (this.#over.has(taskId)) continue;
      const head = await parts.store.head(taskId);
      if (head !== undefined && isTerminal(head.state)) this.#over.add(taskId);
      else if (head?.waiting === true && spec.mayWait && (await asks(parts, taskId))) waiting.add(taskId);
      else open.push(taskId);
    }
    const due = (await parts.due()).filter((taskId) => !waiting.has(taskId));
    const depths = Object.entries(await parts.depths()).filter(([name]) => queuesOf(name));
    const queues = depths.reduce((sum, [, count]) => sum + count, 0);
    const consumers = Object.values(await pendingOf(this.#nc)).reduce((sum, count) => sum + count, 0);
    return { open, due: due.length, queues, consumers };
  }
}

async function asks(parts: RealParts, taskId: string): Promise<boolean> {
  return fold(await parts.store.entries(taskId, 1)).question !== undefined;
}

/** How many messages JetStream waits for, by durable consumer. */
export async function pendingOf(nc: NatsConnection): Promise<Record<string, number>> {
  const jsm = await jetstreamManager(nc, { timeout: 2_000 });
  const pending: Record<string, number> = {};
  for (const stream of STREAMS) await addPending(jsm, stream, pending);
  return pending;
}

async function addPending(
  jsm: JetStreamManager,
  stream: string,
  pending: Record<string, number>,
): Promise<void> {
  for await (const { name, config, num_pending, num_ack_pending } of jsm.consumers.list(stream))
    if (config.durable_name !== undefined) pending[name] = num_pending + num_ack_pending;
}
