import { BINDING } from "../../shared/wire/envelope.ts";
import { cleanLine, durationText, localTime } from "../text.ts";
import { type Allowed, allowedText } from "./allowed.ts";
import type { SeenPeer } from "./look.ts";
import type { Rules } from "./policies.ts";

/** How much of a peer's skills, interfaces or capabilities one line shows, in characters. */
export const MAX_SHOWN = 1_000;

/** A peer with what is allowed between it and each agent of ours. */
export interface Known extends SeenPeer {
  readonly inbound: readonly Allowed[];
  readonly outbound: readonly Allowed[];
}

export const HEAD = [
  "PEER",
  "NAME",
  "CHANNEL",
  "STATE",
  "SPEAKS",
  "SIGNATURE",
  "ACCEPTED BY",
  "ASKED BY",
  "SKILLS",
];

/** A peer on a line of the table. */
export function rowOf(known: Known): string[] {
  const { id, peer, inbound, outbound } = known;
  const skills = peer?.skills.map(({ id: of }) => of) ?? [];
  return [
    id,
    peer?.name ?? "-",
    peer?.extended?.channel_ref ?? "-",
    stateText(known),
    peer === undefined ? "-" : peer.supported ? "as we do" : "otherwise",
    peer?.signature.state ?? "-",
    allowedText(inbound),
    allowedText(outbound),
    cleanLine(skills.join(", "), MAX_SHOWN),
  ];
}

export const REASONS = {
  silent: "no new record",
  expired: "its record has expired",
  gone: "taken away",
  failing: "its card cannot be fetched",
} as const;

function stateText({ status }: SeenPeer): string {
  if (status.state === "amiss") return `amiss: ${status.reason}`;
  if (status.state !== "stale") return status.state;
  return `stale since ${localTime(new Date(status.since))}: ${REASONS[status.reason]}`;
}

/** What lets in a peer that is there and that none of our agents accepts; nothing where one does. */
export function nobodyAccepts({ id, status, inbound }: Known): string | undefined {
  const [first] = inbound;
  if (first === undefined || status.state !== "live" || inbound.some(({ allowed }) => allowed))
    return undefined;
  const agent = inbound.length === 1 ? first.agent : "AGENT";
  return `${id}: nobody accepts it: ./sluice allow ${agent} ${id}`;
}

/** All that is known of a peer, in lines. */
export function inFull(known: Known): string[] {
  const { id, at, inbound, outbound } = known;
  const put = `${durationText(Math.max(0, Date.now() - at))} ago`;
  return [
    `${id}  ${stateText(known)}`,
    field("record", put),
    ...cardLines(known),
    "inbound: who accepts its tasks",
    ...inbound.map((of) => `  ${inboundText(of)}`),
    ...(inbound.length > 0 && !inbound.some(({ allowed }) => allowed) ? ["  nobody accepts it"] : []),
    "outbound: who may hand tasks on to it",
    ...outbound.map((of) => `  ${outboundText(of)}`),
  ];
}

export const field = (name: string, value: string) => `${name.padEnd(12)} ${value}`;

function cardLines({ peer }: SeenPeer): string[] {
  if (peer === undefined) return [];
  const { interfaces, extended, signature } = peer;
  const spoken = interfaces.map((of) => `${of.protocolBinding} ${of.protocolVersion}`);
  const fit = peer.supported ? "as we do" : `we speak ${BINDING} 1.0`;
  const places = interfaces.flatMap(({ url }) => (url === "" ? [] : [url]));
  const said = extended?.signature_status;
  return [
    field("name", peer.name),
    field("channel", extended?.channel_ref ?? "-"),
    field("description", peer.description || "-"),
    field("version", peer.version),
    field("speaks", `${cleanLine(spoken.join(", "), MAX_SHOWN)} (${fit})`),
    field("at", cleanLine(places.join(", "), MAX_SHOWN) || "-"),
    field("can", cleanLine(peer.capabilities.join(", "), MAX_SHOWN) || "-"),
    field("signature", signature.state + (said ? `; says of itself: ${cleanLine(said)}` : "")),
    "skills",
    ...peer.skills.map(({ id, name, description }) => `  ${id}  ${name}${description && `: ${description}`}`),
  ];
}

export function inboundText({ agent, allowed, why, skills }: Allowed): string {
  if (!allowed) return `${agent} does not accept it: ${why}`;
  return `${agent} accepts it${skills ? ` for ${cleanLine(skills.join(", "), MAX_SHOWN)}` : ""}: ${why}`;
}

export function outboundText({ agent, allowed, why, skills = [] }: Allowed): string {
  if (!allowed) return `${agent} may not: ${why}`;
  return `${agent} may for ${cleanLine(skills.join(", "), MAX_SHOWN)}: ${why}`;
}

/** A peer as JSON (docs/command.md, JSON). */
export function recordOf(known: Known, policies: Rules["from"]): object {
  const { id, at, status, peer, inbound, outbound } = known;
  const time = (ms: number) => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);
  const { channel_ref: channelRef = null, signature_status: says = null } = peer?.extended ?? {};
  return {
    peer: id,
    transport: "nats",
    state: status.state,
    reason: "reason" in status ? status.reason : null,
    since: "since" in status ? time(status.since) : null,
    putAt: time(at),
    name: peer?.name ?? null,
    channelRef,
    description: peer?.description ?? null,
    version: peer?.version ?? null,
    skills: peer?.skills.map(({ from: _, ...skill }) => skill) ?? null,
    interfaces: peer?.interfaces ?? null,
    compatible: peer?.supported ?? null,
    capabilities: peer?.capabilities ?? null,
    signature: peer === undefined ? null : { state: peer.signature.state, says: says && cleanLine(says) },
    inbound,
    outbound,
    policies,
  };
}
