import type { AgentPolicy } from "../../shared/config/policy.ts";
import { ADMITTING_AT_ONCE, slotsOf } from "../../shared/policy/concurrency.ts";
import type { Store } from "../../shared/tasks/store.ts";

/** How many tasks of an agent waited when it was last looked, and how many were admitted here since. */
interface Known {
  readonly queued: number;
  admitted: number;
}

/**
 * Which agents have so many waiting tasks that they take no more. One for each sandbox: to look is a request, which
 * not every task must cost. So the count is read again only when it could have reached the bound by now, if all
 * sandboxes had admitted as many as this one; and each time as long as it is known to have.
 */
export class Backlog {
  readonly #known = new Map<string, Known>();

  /**
   * Counts one more task, unless there are enough.
   *
   * @returns why the task is to be rejected, or nothing
   */
  async refuses(
    { store }: { readonly store: Pick<Store, "slots"> },
    runtime: string,
    policy: Pick<AgentPolicy, "maxConcurrent" | "maxQueued">,
  ): Promise<string | undefined> {
    if (slotsOf(policy) === Number.POSITIVE_INFINITY) return undefined;
    const { maxQueued } = policy;
    let known = this.#known.get(runtime);
    if (known === undefined || known.queued + ADMITTING_AT_ONCE * known.admitted >= maxQueued) {
      const { queued } = await store.slots(runtime);
      known = { queued, admitted: 0 };
      this.#known.set(runtime, known);
    }
    if (known.queued >= maxQueued)
      return `overloaded: ${known.queued} tasks wait already, of at most about ${maxQueued}`;
    known.admitted++;
    return undefined;
  }
}
