import type { LookedAt } from "../../../shared/cards/peer-look.ts";
import type { HostedAgent } from "../../../shared/config/deployment.ts";
import { type CardState, lookAtCard } from "../../cards.ts";
import { cleanLine } from "../../text.ts";
import { type Finding, ok, warning, wrong } from "../finding.ts";

const LOOK = "see ./sluice cards, and what the function cards logs: it puts them each minute";

const NEW = `a new agent has one after a restart of \`npm start\`, or a deployment; of any other ${LOOK}`;

/**
 * Whether our agents' cards lie where peers look for them, and are as those expect them.
 *
 * @param agents with their policies as they are in force
 * @param stored what lies under the agents' keys
 */
export function cardFindings(agents: readonly HostedAgent[], stored: readonly LookedAt[]): Finding[] {
  const entries = new Map(stored.map((entry) => [entry.key, entry]));
  const looks = agents.map((agent) => lookAtCard(agent, entries.get(agent.runtime)));
  const of = (state: CardState) => looks.filter((look) => look.state === state);
  const named = (state: CardState) =>
    of(state)
      .map(({ runtime }) => runtime)
      .join(", ");
  const [valid, missing, stale, left] = (["valid", "missing", "stale", "left"] as const).map(of);
  const findings = of("invalid").map(({ runtime, faults }) =>
    wrong(`card of ${runtime}`, `peers refuse it: ${cleanLine(faults.join("; "), 300)}`, LOOK),
  );
  if (missing?.length) findings.push(warning("cards", `nobody finds ${named("missing")}: no card`, NEW));
  if (stale?.length) findings.push(warning("cards", `nobody counts on ${named("stale")}: an old card`, LOOK));
  if (left?.length)
    findings.push(warning("cards", `${named("left")}: not discoverable, and has a card still`, LOOK));
  if (valid?.length) findings.push(ok("cards", `${valid.length} as peers expect them`));
  return findings;
}
