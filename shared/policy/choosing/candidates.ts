import type { Peer, PeersKnown } from "../../cards/peers.ts";
import type { DeploymentConfig, HostedAgent } from "../../config/deployment.ts";
import { agentId, skillSlug } from "../../wire/index.ts";
import { skillKey } from "../delegation.ts";
import type { Facts } from "./chooser.ts";
import { type Declared, type Registry, registryOf } from "./registry.ts";

/** What takes the tasks that no skill is named for. */
export const GENERAL_SKILL = "task";

/** Where a task goes: the executor's channelRef, and the slug of the skill that it is for. */
export interface Address {
  readonly channelRef: string;
  readonly skill: string;
}

/** An agent of the deployment, as far as others choose it; `remote` is the agent over HTTP that works for it. */
export type Hosted = Pick<HostedAgent, "id" | "runtime" | "channelRef" | "displayName" | "skills"> & {
  readonly policy: Pick<HostedAgent["policy"], "enabled">;
  readonly remote?: string | undefined;
};

/** How an agent is, whoever asks. */
type Health = Omit<Facts, "allowed" | "refuses">;

/** Who is asked: what it is known by, how it is, and how a skill of it is addressed. */
interface Candidate {
  readonly declared: Declared;
  readonly facts: Health;
  readonly addressOf: (skill: string) => Address;
}

/** All who may be asked by an agent, of ours and of others. */
export interface Candidates {
  readonly registry: Registry;
  /** How an agent is, whoever asks. */
  factsOf(agent: string): Health;
  /** Where a task for a skill goes at an agent of the registry. */
  addressOf(agent: string, skill: string): Address | undefined;
}

const FINE = { healthy: true, stale: false } as const;

/**
 * The agents of the operator's file, and those that cards tell of.
 *
 * @param of.asking the runtime that hands something on: no skill of its own makes it a candidate, for it has the task already
 * @param of.known what is known of peers; nothing while only the file counts
 * @param of.named an agent that whoever asks names with its address, so that no card is needed
 */
export function candidatesOf(of: {
  readonly deployment: Pick<DeploymentConfig, "choosing"> & { readonly agents: readonly Hosted[] };
  readonly asking: string;
  readonly known?: PeersKnown | undefined;
  readonly named?: { readonly agent: string; readonly channelRef: string } | undefined;
}): Candidates {
  const { deployment, asking, known, named } = of;
  const { agents, choosing } = deployment;
  const fallback = agents.find(({ id }) => id === choosing?.default)?.runtime;
  const overHttp = new Map((known?.peers ?? []).filter(isHttp).map((peer) => [peer.id, peer]));
  const remoteOf = ({ remote = "" }: Hosted) => overHttp.get(remote);
  const isChosen = ({ runtime, policy }: Hosted) => runtime !== asking && policy.enabled;
  // What an agent over HTTP has besides is its card's to say: while that is not looked at, it decides itself.
  const isTold = ({ remote }: Hosted) => remote === undefined || known !== undefined;
  const file = agents.map((agent) => ofFile(agent, isChosen(agent) && isTold(agent), remoteOf(agent)));
  const ours = new Set(agents.map(({ runtime }) => runtime));
  const cards = (known?.peers ?? []).flatMap((peer) =>
    peer.transport === "nats" && !ours.has(peer.id) ? ofCard(peer) : [],
  );
  const all = new Map([...cards, ...file].map((candidate) => [candidate.declared.name, candidate]));
  if (named !== undefined && !all.has(named.agent)) all.set(named.agent, stranger(named));
  const further = agents
    .filter((agent) => isChosen(agent) && isTold(agent))
    .map((agent): Declared => ({ name: agent.runtime, skills: cardSkills(remoteOf(agent)) }));
  return {
    registry: registryOf({
      file: [
        ...(named === undefined ? [] : [{ name: named.agent }]),
        ...file.map(({ declared }) => declared),
      ],
      cards: [...further, ...cards.map(({ declared }) => declared)],
      fallback: fallback === asking ? undefined : fallback,
    }),
    factsOf: (agent) => all.get(agent)?.facts ?? FINE,
    addressOf: (agent, skill) => all.get(agent)?.addressOf(skill),
  };
}

const isHttp = ({ transport }: Peer) => transport === "http";

/**
 * One of ours.
 *
 * @param chosen whether its skills are known, and it is chosen for them
 */
function ofFile(agent: Hosted, chosen: boolean, remote: Peer | undefined): Candidate {
  const { id, runtime: name, channelRef, displayName } = agent;
  const skills = agent.skills.map(({ slug }) => slug);
  return {
    declared: { name, aliases: [id, channelRef, displayName], ...(chosen && { skills }) },
    facts: remote === undefined ? FINE : healthOf(remote),
    addressOf: (skill) => ({ channelRef, skill: ownSlug(skill, [...skills, ...cardSkills(remote)]) }),
  };
}

/** What the card of the agent over HTTP adds to what the file says of the one that stands for it here. */
function cardSkills(remote: Peer | undefined): string[] {
  const ofCard = (remote?.skills ?? []).filter(({ id, from }) => from === "card" && !id.includes("/"));
  return ofCard.flatMap(({ id }) => skillSlug(id) ?? []);
}

/** Over HTTP an agent is there until it is known not to be: what the file says of it counts at once. */
function healthOf({ health, status, failing }: Peer): Health {
  // One that answers all that it is asked with an error is reachable, and yet not there.
  const isStrange = status.state === "unseen" && failing !== undefined;
  return { healthy: health?.reachable !== false && !isStrange, stale: status.state === "stale" };
}

/** A peer on NATS, by its card; one that does not say where its tasks go cannot be asked. */
function ofCard(peer: Peer): Candidate[] {
  const { id: name, extended, status, supported } = peer;
  if (!agentId().safeParse(name).success) return [];
  const skills = peer.skills.flatMap(({ id }) => {
    const skill = skillSlug(id);
    return skill === null || !id.includes("/")
      ? []
      : [{ skill, channelRef: id.slice(0, id.lastIndexOf("/")) }];
  });
  const main = extended?.channel_ref || skills[0]?.channelRef;
  if (main === undefined) return [];
  const aliases = [main, extended?.display_name ?? ""].filter((alias) => alias !== "");
  return [
    {
      declared: { name, aliases, skills: supported === false ? [] : skills.map(({ skill }) => skill) },
      facts: { healthy: true, stale: status.state !== "live" },
      addressOf: (wanted) => {
        const fitting = skills.filter(({ skill }) => skillKey(skill) === skillKey(wanted));
        return (
          fitting.find(({ channelRef }) => channelRef === main) ??
          fitting[0] ?? { channelRef: main, skill: wanted }
        );
      },
    },
  ];
}

/** Nothing is known of it but where its tasks go, and that is enough. */
function stranger({ agent: name, channelRef }: { agent: string; channelRef: string }): Candidate {
  return { declared: { name }, facts: FINE, addressOf: (skill) => ({ channelRef, skill }) };
}

/** A skill under the slug that the agent has for it; one that takes what nobody else does is asked for its general one. */
function ownSlug(skill: string, skills: readonly string[]): string {
  const key = skillKey(skill);
  return skills.find((of) => skillKey(of) === key) ?? skill;
}
