import * as z from "zod";
import type { Finding } from "./config-error.ts";
import type { Fields } from "./host-agent.ts";

/** A field that is written as older deployments call it. */
export interface LegacyField {
  readonly field: string;
  /** What it is read as. */
  readonly canonical: string;
  /** Whether that stands there, too: then what is legacy counts for nothing. */
  readonly unused: boolean;
}

/** A policy in canonical names, as far as it can be read. */
export interface Canonical {
  readonly fields: Fields;
  readonly legacy: readonly LegacyField[];
  readonly findings: readonly Finding[];
}

/** The fields that a policy has had, and which they are now. */
const LEGACY: Readonly<Record<string, string>> = {
  acceptFrom: "acceptFromRuntimes",
  delegateTo: "delegateTargets",
  delegateSkills: "delegateTargets",
  remoteToolPolicy: "allowMemoryWrite",
};

const ON_DISCORD = "a field of agents that live on Discord, without a meaning here; take it out";
const MADE = "made of the deployment's name and the agent's id here; take it out";

/** What a peer's policy may have, and none of ours can (docs/policy.md). */
const FOREIGN: Readonly<Record<string, string>> = {
  guildId: ON_DISCORD,
  channelId: ON_DISCORD,
  discordTranscriptMode: ON_DISCORD,
  shareDiscordContext: ON_DISCORD,
  coPresentFrom: ON_DISCORD,
  coPresentFromRuntimes: ON_DISCORD,
  coPresentTargetChannels: ON_DISCORD,
  autoDelegateEnabled: ON_DISCORD,
  runtimeAgentId: MADE,
  botAgentId: MADE,
  channelRef: MADE,
};

/** Why a field of that name is refused, although others' policies have it. */
export function foreignField(name: string): string | undefined {
  return Object.hasOwn(FOREIGN, name) ? FOREIGN[name] : undefined;
}

const list = z.array(z.unknown());
const tools = z.strictObject({ allow_memory_write: z.boolean() });

/**
 * Reads legacy names as what they are called now. A canonical field that is there and not empty wins.
 *
 * @param isOwn whether a name is a setting of the agent's own, and so none of a policy's
 */
export function canonicalPolicy(written: Fields, isOwn: (name: string) => boolean = () => false): Canonical {
  const names = Object.keys(written).filter((name) => !isOwn(name));
  const foreign = names.flatMap((name) => {
    const message = foreignField(name);
    return message === undefined ? [] : [{ path: [name], message }];
  });
  const old = names.filter((name) => Object.hasOwn(LEGACY, name));
  const rest = Object.fromEntries(
    Object.entries(written).filter(
      ([name]) => isOwn(name) || !(old.includes(name) || foreign.some(({ path: [of] }) => of === name)),
    ),
  );
  const isThere = (name: string) => rest[name] !== undefined && list.safeParse(rest[name]).data?.length !== 0;
  const legacy = old.map((field) => {
    const canonical = LEGACY[field] ?? field;
    return { field, canonical, unused: isThere(canonical) };
  });
  const counts = (field: string) => legacy.some((of) => of.field === field && !of.unused);
  const findings: Finding[] = [...foreign];
  const made: Record<string, unknown> = {};
  if (counts("acceptFrom")) made.acceptFromRuntimes = written.acceptFrom;
  if (counts("delegateTo")) made.delegateTargets = targetsOf(written, findings);
  if (counts("remoteToolPolicy")) {
    const read = tools.safeParse(written.remoteToolPolicy);
    if (read.success) made.allowMemoryWrite = read.data.allow_memory_write;
    else
      findings.push({
        path: ["remoteToolPolicy"],
        message: "expected { allow_memory_write: true or false }",
      });
  }
  return { fields: { ...rest, ...made }, legacy, findings };
}

/** Of each agent each skill; without skills `task`, as ever. */
function targetsOf({ delegateTo, delegateSkills }: Fields, findings: Finding[]): unknown[] {
  const [agents, skills] = [list.safeParse(delegateTo), list.safeParse(delegateSkills ?? [])];
  if (!agents.success) findings.push({ path: ["delegateTo"], message: "expected a list" });
  if (!skills.success) findings.push({ path: ["delegateSkills"], message: "expected a list" });
  const each = skills.data?.length ? skills.data : [undefined];
  return (agents.data ?? []).flatMap((runtimeAgentId) =>
    each.map((skillId) => ({ runtimeAgentId, ...(skillId !== undefined && { skillId }) })),
  );
}

/** A finding of a field that was written under another name. */
export function asWritten({ legacy }: Pick<Canonical, "legacy">, finding: Finding): Finding {
  const [first, ...rest] = finding.path;
  const old = legacy.find(({ canonical, unused }) => canonical === first && !unused);
  if (old === undefined) return finding;
  return { ...finding, path: old.field === "acceptFrom" ? [old.field, ...rest] : [old.field] };
}
