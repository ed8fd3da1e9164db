import { listed } from "../../shared/policy/listed.ts";
import { CliError, EXIT } from "../errors.ts";
import { cleanLine } from "../text.ts";
import type { SeenPeer } from "./look.ts";

/**
 * The peer that a name means: its key, or else what its card calls it. Of several none is taken.
 *
 * @param remotes names of remote agents, for an error
 * @throws CliError `usage` when there is none, or there are several
 */
export function peerNamed(
  seen: readonly SeenPeer[],
  name: string,
  remotes: readonly string[] = [],
): SeenPeer {
  const exact = seen.find(({ id }) => id === name);
  if (exact !== undefined) return exact;
  const called = seen.filter(
    ({ peer }) =>
      peer?.extended?.channel_ref === name || peer?.name.toLowerCase() === cleanLine(name).toLowerCase(),
  );
  const [only, ...others] = called;
  const quoted = JSON.stringify(cleanLine(name));
  if (only === undefined)
    throw new CliError(
      EXIT.usage,
      `no peer ${quoted}; there are ${listed([...seen.map(({ id }) => id), ...remotes])}; our own agents are with ./sluice cards`,
    );
  if (others.length === 0) return only;
  throw new CliError(
    EXIT.usage,
    `peer ${quoted}: several are called so: ${listed(called.map(({ id }) => id))}; name the one that you mean`,
  );
}
