import type { Peer, PeersKnown } from "../../../shared/cards/peers.ts";
import { listed } from "../../../shared/policy/listed.ts";
import { cleanLine, durationText } from "../../text.ts";
import { type Finding, ok, warning } from "../finding.ts";
import type { Governed } from "./policies.ts";

/** A function looks each minute; so long without a look it does not run, or fails each time. */
const LOOK_OVERDUE_MS = 5 * 60_000;
/** How many bad records are named one by one. */
const MAX_NAMED = 5;

/** Who else is there on NATS, as was seen last: whether somebody looks, and whether those whom we need are there. */
export function peerFindings(
  { peers, amiss, lookedAt }: PeersKnown,
  agents: readonly Governed[],
  now: number,
): Finding[] {
  const onNats = peers.filter(({ transport }) => transport === "nats");
  const looked = lookFinding(lookedAt, now, onNats);
  // Who was not looked for may be there.
  const targets = looked.level === "ok" ? agents.flatMap((of) => targetFindings(of, agents, peers)) : [];
  return [looked, ...amissFindings(amiss), ...targets];
}

function lookFinding(lookedAt: number, now: number, peers: readonly Peer[]): Finding {
  const todo = "wait a minute; if it stays so, see what the function cards logs";
  if (lookedAt === 0) return warning("peers", "nobody has looked for any yet", todo);
  if (now - lookedAt > LOOK_OVERDUE_MS && peers.some((of) => wasLive(of, lookedAt)))
    return warning("peers", `nobody has looked for them since ${durationText(now - lookedAt)}`, todo);
  const live = peers.filter(({ status }) => status.state === "live").length;
  return ok("peers", `${live} live, ${peers.length - live} stale`);
}

/** Whether a peer was there at the last look: while nobody is, looks are not written (docs/remotes.md, who is there). */
function wasLive({ status }: Peer, lookedAt: number): boolean {
  return status.state === "live" || (status.state === "stale" && status.since > lookedAt);
}

function amissFindings(amiss: PeersKnown["amiss"]): Finding[] {
  const findings = amiss
    .slice(0, MAX_NAMED)
    .map(({ key, reason }) =>
      warning(
        `record ${cleanLine(key, 128)}`,
        `is none: ${cleanLine(reason, 300)}; existing peers read no further than there`,
        "tell its owner, or take it out of the bucket A2A_PEERS",
      ),
    );
  const more = amiss.length - findings.length;
  if (more > 0) findings.push(warning("records", `${more} more are none`, "see them with ./sluice peers"));
  return findings;
}

/** Whom an agent is to hand tasks on to, by name, and who is not there, or speaks otherwise. */
function targetFindings(
  { runtime, policy }: Governed,
  agents: readonly Governed[],
  peers: readonly Peer[],
): Finding[] {
  const names = new Set(policy.delegateTargets.map(({ runtimeAgentId }) => runtimeAgentId));
  const ours = new Set(["*", ...agents.map((of) => of.runtime)]);
  const known = new Map(peers.map((of) => [of.id, of]));
  const others = [...names].filter((name) => !ours.has(name));
  const is = (state: string) =>
    others.filter((name) => (known.get(name)?.status.state ?? "unseen") === state);
  const otherwise = others.filter((name) => known.get(name)?.supported === false);
  const of = (who: readonly string[], says: string, todo: string) =>
    who.length === 0 ? [] : [warning(`targets of ${runtime}`, `${listed(who)}: ${says}`, todo)];
  return [
    ...of(
      is("unseen"),
      "no card of it was ever seen",
      "see that it runs, and shows one: ./sluice peers; a new one is known within a minute",
    ),
    ...of(is("stale"), "its card is stale", "see that it runs: ./sluice peers"),
    ...of(otherwise, "it speaks otherwise than we do", "see ./sluice peers, and update it or us"),
  ];
}
