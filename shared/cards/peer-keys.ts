import type { PeerFacts } from "./peer-facts.ts";

/** The partition of all that is known of peers (docs/table.md). */
export const PEERS_PARTITION = "peers";

/** The name, in that partition, of what a peer says of itself. */
export function factsName({ transport, id }: Pick<PeerFacts, "transport" | "id">): string {
  return `${transport}#${id}`;
}
