import type { NatsConnection } from "@nats-io/transport-node";
import { nearest } from "../shared/config/nearest.ts";
import { agentId } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { findCard, hasDurable } from "./peers.ts";
import { cleanLine } from "./text.ts";

/** Whom a task is for. */
export interface Target {
  readonly runtime: string;
  readonly channelRef: string;
}

/** The agent of our own deployment that a name means: its short id, or its whole runtime id. */
export function ownTarget(home: Pick<Home, "deployment" | "agents">, name: string): Target | null {
  const prefix = `${home.deployment}-`;
  if (home.agents.includes(name)) return { runtime: `${prefix}${name}`, channelRef: name };
  if (name.startsWith(prefix) && name.length > prefix.length)
    return { runtime: name, channelRef: name.slice(prefix.length) };
  return null;
}

/**
 * Finds whom a name means: with a `channelRef` the runtime of that name, otherwise an agent of ours, an agent whose
 * card is in the bucket, or one of our deployment that this folder does not know but that has listened before.
 *
 * @throws CliError `usage` when it is none of these, or its channelRef cannot be known
 */
export async function findTarget(
  nc: NatsConnection,
  home: Pick<Home, "deployment" | "agents">,
  name: string,
  channelRef?: string,
): Promise<Target> {
  if (!agentId.safeParse(name).success)
    throw new CliError(
      EXIT.usage,
      `agent ${JSON.stringify(cleanLine(name))}: expected 1 to 64 of A-Z, a-z, 0-9, _ and -; see ./sluice agents`,
    );
  if (channelRef?.trim() === "")
    throw new CliError(EXIT.usage, "--channel: expected the channelRef of the agent, got an empty text");
  if (channelRef !== undefined) return { runtime: name, channelRef };
  const own = ownTarget(home, name);
  if (own !== null) return own;
  const card = await findCard(nc, name);
  if (card?.channelRef !== undefined) return { runtime: name, channelRef: card.channelRef };
  const short = { runtime: `${home.deployment}-${name}`, channelRef: name };
  if (await hasDurable(nc, short.runtime)) return short;
  if (card !== null || (await hasDurable(nc, name)))
    throw new CliError(EXIT.usage, `agent ${name}: its card names no channelRef; add --channel REF`);
  const meant = nearest(name, home.agents);
  throw new CliError(
    EXIT.usage,
    `no agent "${name}"${meant === undefined ? "" : `, did you mean ${meant}?`}; known here are ${home.agents.join(", ") || "none"}; see ./sluice agents, or add --channel REF for an agent that shows no card`,
  );
}
