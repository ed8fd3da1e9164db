import type { AgentPolicy } from "../../shared/config/policy.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import type { Quotas } from "./quotas.ts";

/** A task that is about to be admitted. */
export interface Admitting {
  readonly to: string;
  readonly from: string;
  readonly taskId: string;
  /** When all of it may be deleted, in seconds since 1970. */
  readonly expiresAt: number;
}

/** Counts a task among those that are open, unless its agent's quotas are used up. */
export interface Quota {
  /** @returns why the task is to be rejected, or nothing */
  refuses(quotas: AgentPolicy["quotas"], task: Admitting): Promise<string | undefined>;
}

/** Quotas over the table. What they take is loaded when an agent has one: most have none. */
export function quotaOf({ access, now }: { access: TableAccess; now: () => number }): Quota {
  let loaded: Promise<Quotas> | undefined;
  const load = async () => {
    const [{ Quotas }, { quotaNotes }] = await Promise.all([
      import("./quotas.ts"),
      import("../../shared/policy/quota-notes.ts"),
    ]);
    return new Quotas({ notes: quotaNotes(access), now });
  };
  return {
    async refuses(quotas, task) {
      if (quotas.open === 0 && quotas.openPerPeer === 0) return undefined;
      loaded ??= load();
      return (await loaded).refuses(quotas, task);
    },
  };
}
