import type { NatsConnection } from "@nats-io/transport-node";
import { nearest } from "../shared/config/nearest.ts";
import { agentId } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { findCard, hasDurable, readCards } from "./peers.ts";
import { cleanLine } from "./text.ts";

/** How many agents of the same alias are named. */
const LISTED = 5;

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
 * card is in the bucket, one of our deployment that this folder does not know but that has listened before, or the one
 * agent whose card has the name as its alias: its channelRef, or what people call it.
 *
 * @throws CliError `usage` when it is none of these, several have the alias, or its channelRef cannot be known
 */
export async function findTarget(
  nc: NatsConnection,
  home: Pick<Home, "deployment" | "agents">,
  name: string,
  channelRef?: string,
): Promise<Target> {
  if (channelRef !== undefined) return runtimeNamed(name, channelRef);
  const own = ownTarget(home, name);
  if (own !== null) return own;
  return (await byRuntime(nc, home, name)) ?? (await byAlias(nc, name)) ?? noSuchAgent(home, name);
}

function runtimeNamed(runtime: string, channelRef: string): Target {
  if (!agentId().safeParse(runtime).success)
    throw new CliError(
      EXIT.usage,
      `agent ${JSON.stringify(cleanLine(runtime))}: expected 1 to 64 of A-Z, a-z, 0-9, _ and -; see ./sluice agents`,
    );
  if (channelRef.trim() === "")
    throw new CliError(EXIT.usage, "--channel: expected the channelRef of the agent, got an empty text");
  return { runtime, channelRef };
}

async function byRuntime(
  nc: NatsConnection,
  home: Pick<Home, "deployment">,
  name: string,
): Promise<Target | undefined> {
  if (!agentId().safeParse(name).success) return undefined;
  const card = await findCard(nc, name);
  if (card?.channelRef !== undefined) return { runtime: name, channelRef: card.channelRef };
  const short = { runtime: `${home.deployment}-${name}`, channelRef: name };
  if (await hasDurable(nc, short.runtime)) return short;
  if (card === null && !(await hasDurable(nc, name))) return undefined;
  throw new CliError(EXIT.usage, `agent ${name}: its card names no channelRef; add --channel REF`);
}

/** Who is meant by an alias is never guessed: an old card counts for nothing, and of several none is taken. */
async function byAlias(nc: NatsConnection, name: string): Promise<Target | undefined> {
  const meant = (await readCards(nc)).flatMap(({ agentId: runtime, channelRef, displayName, stale }) =>
    !stale && channelRef !== undefined && isAlias(name, channelRef, displayName)
      ? [{ runtime, channelRef }]
      : [],
  );
  if (meant.length <= 1) return meant[0];
  const runtimes = meant.map(({ runtime }) => cleanLine(runtime)).sort();
  const listed = runtimes.slice(0, LISTED).join(", ");
  const more = runtimes.length > LISTED ? `, and ${runtimes.length - LISTED} more` : "";
  throw new CliError(
    EXIT.usage,
    `agent ${JSON.stringify(cleanLine(name))}: several are called so: ${listed}${more}; name the one that you mean`,
  );
}

function isAlias(name: string, channelRef: string, displayName: string | undefined): boolean {
  return name === channelRef || name.toLowerCase() === displayName?.toLowerCase();
}

function noSuchAgent(home: Pick<Home, "agents">, name: string): never {
  const [meant] = nearest(name, home.agents);
  throw new CliError(
    EXIT.usage,
    `no agent ${JSON.stringify(cleanLine(name))}${meant === undefined ? "" : `, did you mean ${meant}?`}; known here are ${home.agents.join(", ") || "none"}; see ./sluice agents, or add --channel REF for an agent that shows no card`,
  );
}
