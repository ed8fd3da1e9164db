import type { Peer } from "../../shared/cards/peers.ts";
import type { InvalidReason } from "../../shared/cards/verifying.ts";
import { cleanLine, countText, durationText, localTime } from "../text.ts";
import { allowedText } from "./allowed.ts";
import { circuitRecord, circuitText } from "./circuits.ts";
import type { Rules } from "./policies.ts";
import type { KnownRemote } from "./remotes.ts";
import { field, inboundText, MAX_SHOWN, outboundText, REASONS } from "./show.ts";

export const REMOTES_HEAD = [
  "REMOTE",
  "NAME",
  "STATE",
  "HEALTH",
  "CIRCUIT",
  "SPEAKS",
  "SIGNATURE",
  "STANDS FOR IT",
  "ASKED BY",
  "SKILLS",
];

/** A remote agent on a line of the table. */
export function remoteRow({ peer, circuit, fronts, outbound }: KnownRemote): string[] {
  return [
    peer.id,
    peer.name,
    stateText(peer),
    healthText(peer),
    circuitText(circuit),
    speaksText(peer),
    signatureText(peer),
    fronts.join(", ") || "nobody",
    allowedText(outbound),
    cleanLine(peer.skills.map(({ id }) => id).join(", "), MAX_SHOWN),
  ];
}

const since = (ms: number | undefined) => (ms === undefined ? "" : ` since ${localTime(new Date(ms))}`);
const ago = (ms: number) => `${durationText(Math.max(0, Date.now() - ms))} ago`;

function stateText({ status, failing }: Peer): string {
  if (status.state === "stale") return `stale${since(status.since)}: ${REASONS[status.reason]}`;
  return failing === undefined ? status.state : `${status.state}, failing${since(failing.failingSince)}`;
}

function healthText({ health }: Peer): string {
  if (health === undefined) return "-";
  return health.reachable ? `answers in ${durationText(health.latencyMs)}` : "does not answer";
}

function speaksText({ supported }: Peer): string {
  if (supported === undefined) return "-";
  return supported ? "as we do" : "otherwise";
}

function signatureText({ signature, failing }: Peer): string {
  return failing?.offeredKey === undefined ? signature.state : "another key";
}

/** Whether a card was refused because the ones before it were signed and it is not. */
export function isUnsigned(reason: string | undefined): boolean {
  return reason?.includes("signature_missing" satisfies InvalidReason) ?? false;
}

/** What an operator is to do about a remote agent, a line each. */
export function remoteAdvice({ peer }: KnownRemote): string[] {
  const { id, failing } = peer;
  if (failing?.offeredKey !== undefined)
    return [`${id}: its card is signed by another key: ./sluice peers accept ${id}`];
  return isUnsigned(failing?.reason)
    ? [`${id}: its card is not signed any more: ./sluice peers accept ${id} --unsigned`]
    : [];
}

/** All that is known of a remote agent, in lines. */
export function remoteInFull(known: KnownRemote): string[] {
  const { remote, peer, circuit, fronts, inbound, outbound } = known;
  const { interfaces, signature, failing, health } = peer;
  const spoken = [...new Set(interfaces.map((of) => `${of.protocolBinding} ${of.protocolVersion}`))];
  const fit = peer.supported ? "as we do" : "we speak JSONRPC and HTTP+JSON, 1.0 and 0.3";
  return [
    `${peer.id}  ${stateText(peer)}`,
    field("at", remote.url),
    field("as", remote.auth === undefined ? "nobody" : `${remote.auth.scheme}, ${remote.auth.credentials}`),
    field("card", peer.lastSeen === undefined ? "none was had yet" : `last had ${ago(peer.lastSeen)}`),
    ...(failing === undefined
      ? []
      : [
          field("failing", `${countText(failing.failures, "time")} in a row${since(failing.failingSince)}`),
          field("because", cleanLine(failing.reason ?? "-", MAX_SHOWN)),
        ]),
    field("health", health === undefined ? "-" : `${healthText(peer)}, ${ago(health.at)}`),
    ...(health?.error === undefined ? [] : [field("because", cleanLine(health.error, MAX_SHOWN))]),
    field("circuit", circuitText(circuit)),
    field("name", peer.name),
    field("description", peer.description || "-"),
    field("version", peer.version || "-"),
    field("speaks", spoken.length === 0 ? "-" : `${cleanLine(spoken.join(", "), MAX_SHOWN)} (${fit})`),
    field("can", cleanLine(peer.capabilities.join(", "), MAX_SHOWN) || "-"),
    field("signature", signature.state),
    ...(signature.key === undefined ? [] : [field("key", signature.key)]),
    ...(failing?.offeredKey === undefined ? [] : [field("offered", failing.offeredKey)]),
    ...peer.notes.map((of) => field("note", cleanLine(of, MAX_SHOWN))),
    "skills",
    ...peer.skills
      .map(({ id, name, description, from }) =>
        cleanLine(`${id} (${from})  ${name}${description && `: ${description}`}`, MAX_SHOWN),
      )
      .map((line) => `  ${line}`),
    field("stands for", fronts.join(", ") || "nobody of ours"),
    "inbound: who accepts its tasks",
    ...inbound.map((of) => `  ${inboundText(of)}`),
    "outbound: who may hand tasks on to it",
    ...outbound.map((of) => `  ${outboundText(of)}`),
    ...remoteAdvice(known),
  ];
}

/** A remote agent as JSON (docs/command.md, JSON). */
export function remoteRecord(known: KnownRemote, policies: Rules["from"]): object {
  const { remote, peer, circuit, fronts, inbound, outbound } = known;
  const { status, failing, health, signature } = peer;
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());
  return {
    peer: peer.id,
    transport: "http",
    url: remote.url,
    state: status.state,
    reason: "reason" in status ? status.reason : null,
    since: "since" in status ? time(status.since) : null,
    lastSeen: time(peer.lastSeen),
    failing:
      failing === undefined
        ? null
        : {
            failures: failing.failures,
            since: time(failing.failingSince),
            reason: cleanLine(failing.reason ?? "", MAX_SHOWN),
          },
    health:
      health === undefined
        ? null
        : { ...health, at: time(health.at), error: health.error && cleanLine(health.error, MAX_SHOWN) },
    circuit: circuitRecord(circuit),
    name: peer.name,
    description: peer.description,
    version: peer.version,
    skills: peer.skills,
    interfaces: peer.interfaces,
    compatible: peer.supported ?? null,
    capabilities: peer.capabilities,
    notes: peer.notes.map((of) => cleanLine(of, MAX_SHOWN)),
    signature: {
      state: signature.state,
      key: signature.key ?? null,
      offered: failing?.offeredKey ?? null,
    },
    fronts,
    inbound,
    outbound,
    policies,
  };
}
