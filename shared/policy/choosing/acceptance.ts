import type { AgentPolicy } from "../../config/policy.ts";
import { $ZodError } from "../../zod.ts";
import { isOpen, isWelcome } from "../exposed.ts";
import type { Hosted } from "./candidates.ts";

/** The policies of our agents, as far as these say whose tasks an agent takes, and for which skills. */
export interface Doors {
  /** @returns the policy in force; nothing when the agent is not hosted */
  of(
    runtime: string,
  ): Promise<Pick<AgentPolicy, "enabled" | "acceptFromRuntimes" | "acceptSkills"> | undefined>;
}

/** What one of ours would be asked for. */
export interface Errand {
  readonly agent: Pick<Hosted, "runtime" | "skills">;
  /** As the agent calls it. */
  readonly skill: string;
}

/**
 * Who of ours would refuse a task at its admission (docs/policy.md): nobody is drawn who is known to say no.
 *
 * @param from the runtime that asks
 * @returns the runtimes of those that would
 * @throws when the table cannot be asked
 */
export async function refusing(
  doors: Doors,
  from: string,
  errands: readonly Errand[],
): Promise<ReadonlySet<string>> {
  const each = await Promise.all(
    errands.map(async ({ agent, skill }) =>
      (await takes(doors, from, { agent, skill })) ? [] : [agent.runtime],
    ),
  );
  return new Set(each.flat());
}

async function takes(doors: Doors, from: string, { agent, skill }: Errand): Promise<boolean> {
  try {
    const policy = await doors.of(agent.runtime);
    if (policy === undefined) return false;
    return policy.enabled && isWelcome(policy, from) && isOpen(agent, policy, skill);
  } catch (error) {
    // Of a later version: what cannot be read may forbid it, and is the one agent's trouble and no other's.
    if (error instanceof $ZodError) return false;
    throw error;
  }
}
