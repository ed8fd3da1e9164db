import type { DeploymentConfig } from "../config/deployment.ts";
import { isShown } from "../policy/exposed.ts";
import { encodeRecord } from "./fit.ts";
import { type CardContext, cardRecord } from "./record.ts";
import { recordFaults } from "./validate.ts";

/** The card of one of our agents, ready to be shown. */
export interface OwnCard {
  /** The agent's runtime, which is the card's key. */
  readonly runtime: string;
  /** The agent's version, as its card has it. */
  readonly version: string;
  readonly bytes: Uint8Array;
}

/** The cards of a deployment, and what cannot be shown. */
export interface OwnCards {
  readonly cards: readonly OwnCard[];
  /** Agents whose card some reader would refuse, with what is wrong with it. */
  readonly withheld: readonly { readonly runtime: string; readonly faults: readonly string[] }[];
}

/**
 * The cards of all agents that have one. Each is checked: one bad record would hide others'.
 *
 * @param deployment whose agents have the policies in force
 */
export function ownCards(
  { deployment, agents, discovery }: DeploymentConfig,
  of: Omit<CardContext, "deployment" | "guild">,
): OwnCards {
  const context = { ...of, deployment, guild: discovery?.discordGuildId };
  const made = agents
    .filter(({ policy }) => isShown(policy))
    .map((agent) => {
      const record = cardRecord(agent, context);
      const { runtime } = agent;
      const bytes = encodeRecord(record);
      return { runtime, version: record.card.version, bytes, faults: recordFaults(runtime, bytes) };
    });
  return {
    cards: made
      .filter(({ faults }) => faults.length === 0)
      .map(({ runtime, version, bytes }) => ({ runtime, version, bytes })),
    withheld: made
      .filter(({ faults }) => faults.length > 0)
      .map(({ runtime, faults }) => ({ runtime, faults })),
  };
}
