import type { CredentialPlaces } from "../shared/remotes/credentials.ts";
import type { FunctionName } from "./bundle.ts";
import type { Parts } from "./parts.ts";
import type { AgentQueue } from "./queues.ts";

const NOWHERE: CredentialPlaces = { secrets: [], files: [], variables: [] };

/**
 * Where it is told who we are to the remote agents that a function asks: `cards` asks all of them, and a work function
 * those that the agents are whom it works for.
 *
 * @param own the agent's queue, for a work function of its own
 */
export function credentialsFor(
  name: FunctionName,
  { credentials, fronts, queues }: Pick<Parts, "credentials" | "fronts" | "queues">,
  own?: AgentQueue,
): CredentialPlaces {
  if (name === "cards") return credentials;
  if (name !== "work") return NOWHERE;
  if (own !== undefined) return fronts.get(own.agentId) ?? NOWHERE;
  const elsewhere = new Set(queues.own.map(({ agentId }) => agentId));
  const asked = [...fronts].flatMap(([id, places]) => (elsewhere.has(id) ? [] : [places]));
  const all = (of: keyof CredentialPlaces) => [...new Set(asked.flatMap((places) => places[of]))];
  return { secrets: all("secrets"), files: all("files"), variables: all("variables") };
}
