import type { DeploymentConfig } from "../config/deployment.ts";
import { slotsOf } from "../policy/concurrency.ts";
import type { Policies } from "../policy/runtime-policy.ts";
import { errorFields, type Telemetry } from "../telemetry/index.ts";
import type { Head } from "./items.ts";
import { hintOf, type WorkHint } from "./messages.ts";
import { hasRoom, type Slots } from "./slots.ts";
import type { Store } from "./store.ts";

/** Places of the line whose tasks are gone that are cleared away in one go. */
const MAX_CLEARED = 10;

/** What handing on a slot takes. */
export interface HandOnDeps {
  readonly store: Store;
  readonly deployment: DeploymentConfig;
  readonly policies: Policies;
  readonly telemetry: Pick<Telemetry, "warn">;
  /** Puts a hint on the queue `work`. */
  readonly hint: (hint: WorkHint, delaySeconds: number) => Promise<void>;
}

/**
 * The head of the task that a free slot of an agent is for.
 *
 * @param known the agent's slots if they have just been read
 * @returns nothing when there is no slot, or nobody waits
 */
export async function nextInLine(
  { store, policies }: Pick<HandOnDeps, "store" | "policies">,
  runtime: string,
  known?: Slots,
): Promise<Head | undefined> {
  const slots = known ?? (await store.slots(runtime));
  if (slots.queued <= 0 || !hasRoom(slots, slotsOf(await policies.of(runtime)))) return undefined;
  for (let cleared = 0; cleared < MAX_CLEARED; cleared++) {
    const waiter = await store.nextWaiter(runtime, slots.lastFrom);
    if (waiter === undefined) return undefined;
    const head = await store.head(waiter.taskId);
    if (head?.queued === waiter.place) return head;
    // It has just left the line, or its items are deleted.
    await store.dropWaiter(waiter);
  }
  return undefined;
}

/**
 * Offers a free slot of an agent to whoever is next in its line. Who takes it offers the next, so one offer fills them
 * all. What goes wrong here is nobody's failure: `sweep` does the same each minute.
 *
 * @param known the agent's slots if they have just been read
 */
export async function handOn(deps: HandOnDeps, runtime: string, known?: Slots): Promise<void> {
  try {
    const next = await nextInLine(deps, runtime, known);
    if (next !== undefined) await deps.hint(hintOf(next), 0);
  } catch (error) {
    deps.telemetry.warn("a slot is not handed on yet", { to: runtime, ...errorFields(error) });
  }
}

/**
 * Does so for all agents, for a limit may just have been lifted. Their counts are read together: a deployment may host
 * hundreds of agents, and nearly always there is nothing to hand on.
 *
 * @returns the slots as they were read
 */
export async function handOnAll(deps: HandOnDeps): Promise<ReadonlyMap<string, Slots>> {
  try {
    const all = await deps.store.allSlots(deps.deployment.agents.map(({ runtime }) => runtime));
    await Promise.all([...all].map(([runtime, slots]) => handOn(deps, runtime, slots)));
    return all;
  } catch (error) {
    deps.telemetry.warn("no slots are handed on yet", errorFields(error));
    return new Map();
  }
}
