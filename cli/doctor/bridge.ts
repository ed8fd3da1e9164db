import { join } from "node:path";
import type { Place } from "../place.ts";
import { USUAL_START } from "../start-again.ts";

/** What to do about the bridge, which makes the durables and pulls from them. */
export interface BridgeAdvice {
  /** When there is nothing that it makes. */
  readonly begin: string;
  /** When a durable that it should have made does not exist. */
  readonly renew: string;
  /** When nobody pulls. */
  readonly look: string;
}

/**
 * @param place where it runs, if that is known
 * @param start the command that starts a local host
 */
export function bridgeAdvice(
  place: Pick<Place, "local" | "deployed"> | undefined,
  start = USUAL_START,
): BridgeAdvice {
  const begin = `start the bridge (\`${start}\`, or deploy)`;
  if (place?.deployed !== undefined)
    return {
      begin,
      renew:
        "a new agent comes with a deployment: deploy again; the bridge then makes its durables, 24 hours back",
      look: "see that it is scheduled, or its service runs (told here, too), and the lines of its log group, bridge",
    };
  const log = join(place?.local?.dataDir ?? ".sluice", "logs", "bridge.log");
  if (place === undefined)
    return {
      begin,
      renew: `${begin}: it makes its durables, 24 hours back`,
      look: `start the bridge (\`${start}\`); one that runs in AWS is looked at with --stack`,
    };
  return {
    begin,
    renew: "a new agent needs a restart of `npm start`; the bridge then makes its durables, 24 hours back",
    look: `see what the bridge logs, in ${log}; if it is silent, restart \`npm start\``,
  };
}
