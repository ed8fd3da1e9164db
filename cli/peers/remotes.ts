import { type PeerStore, peersOver } from "../../shared/cards/peer-store.ts";
import { type Peer, peersKnown } from "../../shared/cards/peers.ts";
import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import { whyLeftOut } from "../../shared/remotes/hosted-skills.ts";
import { skillSlug } from "../../shared/wire/index.ts";
import { CliError } from "../errors.ts";
import type { Home } from "../home.ts";
import type { Output } from "../output.ts";
import { ownDeployment } from "../own-agents.ts";
import type { Place } from "../place.ts";
import { type Allowed, outbound, type Ruled } from "./allowed.ts";
import { type Circuits, type Standing, standingOf } from "./circuits.ts";
import { shown } from "./look.ts";
import type { Rules } from "./policies.ts";

/** A remote agent as it is known, and what is allowed between it and each agent of ours. */
export interface KnownRemote {
  readonly remote: RemoteConfig;
  /** Its texts are clean, on one line, and cut. */
  readonly peer: Peer;
  /** How its circuit stands; nothing where the table is not known. */
  readonly circuit: Standing | undefined;
  /** The agents of ours that stand for it: their runtimes. */
  readonly fronts: readonly string[];
  readonly inbound: readonly Allowed[];
  readonly outbound: readonly Allowed[];
}

/**
 * The remote agents of `agents.yaml`, as the table of the stack that is named knows them, or that of the local host that
 * runs here; where there is none, as the file has them.
 *
 * @throws CliError `usage` when `agents.yaml` or an agent's file is not as expected; when the stack that was named does
 *   not answer
 */
export async function knownRemotes(
  home: Home,
  named: Place | undefined,
  rules: Rules,
  out: Output,
): Promise<KnownRemote[]> {
  const deployment = await ownDeployment(home);
  const { remotes = [] } = deployment;
  if (remotes.length === 0) return [];
  const { peers, circuits } = await toldOf(home, named, remotes, out);
  return peers.flatMap((peer) => {
    const remote = remotes.find(({ name }) => name === peer.id);
    if (remote === undefined) return [];
    const circuit = standingOf(circuits, peer.id, Date.now());
    return [{ remote, peer, circuit, ...withRules(remote, peer, deployment, rules) }];
  });
}

/** What the table tells of remote agents, or the file alone. */
interface Told {
  readonly peers: readonly Peer[];
  /** Nothing where the table is not known. */
  readonly circuits?: Circuits;
}

async function toldOf(
  home: Home,
  named: Place | undefined,
  remotes: readonly RemoteConfig[],
  out: Output,
): Promise<Told> {
  const byFile = async () => ({ peers: await overHttp(NOTHING, remotes) });
  if (named === undefined && home.stack === undefined) {
    out.note("what is known of remote agents is told by a running local host, or by --stack NAME");
    return byFile();
  }
  // The clients of AWS take long to load.
  const [{ findPlace, reach }, { openPeers }] = await Promise.all([
    import("../place.ts"),
    import("./open.ts"),
  ]);
  try {
    const place = named ?? (await findPlace(home));
    using open = openPeers(place);
    const names = remotes.map(({ name }) => name);
    const told = Promise.all([overHttp(open.store, remotes), open.circuits(names)]);
    const [peers, circuits] = await reach(place.label, told);
    return { peers, circuits };
  } catch (error) {
    if (named !== undefined || !(error instanceof CliError)) throw error;
    out.note(`what is known of remote agents cannot be read: ${error.message}`);
    return byFile();
  }
}

/** A table that was never written. */
const NOTHING = peersOver({
  all: async () => new Map(),
  get: async () => undefined,
  put: async () => false,
  remove: async () => false,
});

async function overHttp(store: PeerStore, remotes: readonly RemoteConfig[]): Promise<Peer[]> {
  const { peers } = await peersKnown(store, remotes, Date.now());
  return peers
    .filter(({ transport }) => transport === "http")
    .map(shown)
    .map(neverSeen)
    .map(usable);
}

/** What nobody can ask for here is no skill, but a note of why. */
function usable(peer: Peer): Peer {
  return {
    ...peer,
    skills: peer.skills.filter(({ id }) => whyLeftOut(id) === undefined),
    notes: [...peer.notes, ...peer.skills.flatMap(({ id }) => whyLeftOut(id) ?? [])],
  };
}

/** Who never had a card did not go stale: it was not seen yet, and since when that fails is told beside. */
function neverSeen(peer: Peer): Peer {
  return peer.lastSeen === undefined && peer.status.state === "stale"
    ? { ...peer, status: { state: "unseen" } }
    : peer;
}

function withRules(
  remote: RemoteConfig,
  peer: Peer,
  { agents }: DeploymentConfig,
  rules: Rules,
): Pick<KnownRemote, "fronts" | "inbound" | "outbound"> {
  const fronts = agents.filter((of) => of.remote === remote.name);
  return {
    fronts: fronts.map(({ runtime }) => runtime),
    inbound: rules.agents.map(({ id: agent }) => ({
      agent,
      allowed: false,
      why: "it is asked over HTTP, and asks nobody here",
    })),
    outbound: rules.agents
      .filter(({ id }) => !fronts.some((of) => of.id === id))
      .map((of) => throughFronts(of, fronts, peer)),
  };
}

/** Whether an agent may hand tasks on to a remote one: to an agent of ours that stands for it. */
export function throughFronts(
  agent: Ruled,
  fronts: readonly HostedAgent[],
  { id, skills }: Pick<Peer, "id" | "skills">,
): Allowed {
  const answers = fronts.map((front) => {
    const slugs = new Set([
      ...front.skills.map(({ slug }) => slug),
      ...skills.flatMap((of) => (of.id.includes("/") ? [] : (skillSlug(of.id) ?? []))),
    ]);
    const ids = [...slugs].map((slug) => `${front.channelRef}/${slug}`);
    return { ...outbound(agent, { id: front.runtime, skills: ids }), through: front.runtime };
  });
  const answer = answers.find(({ allowed }) => allowed) ?? answers[0];
  const nobody = `no agent of ours stands for it: agents: { ID: { remote: ${id} } } in agents.yaml`;
  if (answer === undefined) return { agent: agent.id, allowed: false, why: nobody };
  const { through, ...of } = answer;
  return { ...of, why: `${of.why} (${through})` };
}
