import { isDeepStrictEqual } from "node:util";
import { type AgentPolicy, policyFields } from "../config/policy.ts";

/** The name of a field of a policy. */
export type PolicyField = keyof AgentPolicy;

/** The names of all fields, in the order in which they are shown. */
export const POLICY_FIELDS: readonly PolicyField[] = Object.keys(policyFields).filter(isPolicyField);

export function isPolicyField(name: string): name is PolicyField {
  return Object.hasOwn(policyFields, name);
}

/** A field of the policy in force that a change makes another. */
export interface FieldChange {
  readonly field: PolicyField;
  readonly before: unknown;
  readonly after: unknown;
}

/** What is different in another policy. */
export function changesOf(before: AgentPolicy, after: AgentPolicy): FieldChange[] {
  return POLICY_FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field])).map((field) => ({
    field,
    before: before[field],
    after: after[field],
  }));
}

/** Why a change should be thought about: somebody gets more than before (docs/policy.md, sensitive changes). */
export type Risk =
  | "enables"
  | "opens_to_everyone"
  | "accepts_peer"
  | "more_skills"
  | "delegates_to_more"
  | "fetches_more"
  | "memory_write"
  | "raises_limit"
  | "shows_more";

/** Those for which nobody need confirm: an exact peer is named by whoever lets it in (`sluice allow`). */
const HARMLESS: ReadonlySet<Risk> = new Set(["accepts_peer", "shows_more"]);

/** Whether a change may be made only with a confirmation token. */
export function isSensitive(risks: readonly Risk[]): boolean {
  return risks.some((risk) => !HARMLESS.has(risk));
}

/** What a change of the policy in force risks. */
export function risksOf(before: AgentPolicy, after: AgentPolicy): Risk[] {
  const risks: readonly (readonly [Risk, boolean])[] = [
    ["enables", after.enabled && !before.enabled],
    ["opens_to_everyone", opens(before.acceptFromRuntimes, after.acceptFromRuntimes)],
    ["accepts_peer", acceptsMore(before.acceptFromRuntimes, after.acceptFromRuntimes)],
    ["more_skills", widens(before.acceptSkills, after.acceptSkills)],
    ["delegates_to_more", adds(before.delegateTargets, after.delegateTargets)],
    ["fetches_more", fetchesMore(before.delegateMedia, after.delegateMedia)],
    ["memory_write", after.allowMemoryWrite && !before.allowMemoryWrite],
    ["raises_limit", limitsOf(after).some((limit, at) => limit > (limitsOf(before)[at] ?? 0))],
    ["shows_more", showsMore(before, after)],
  ];
  return risks.flatMap(([risk, is]) => (is ? [risk] : []));
}

function opens(before: readonly string[], after: readonly string[]): boolean {
  return after.includes("*") && !before.includes("*");
}

/** Whether a peer is let in that was not: by its own name, and not where everybody was before. */
function acceptsMore(before: readonly string[], after: readonly string[]): boolean {
  if (before.includes("*")) return false;
  return adds(
    before,
    after.filter((of) => of !== "*"),
  );
}

function adds(before: readonly unknown[], after: readonly unknown[]): boolean {
  return after.some((one) => !before.some((other) => isDeepStrictEqual(one, other)));
}

/** Of a list that stands for all when it is empty. */
function widens(before: readonly unknown[], after: readonly unknown[]): boolean {
  if (before.length === 0) return false;
  return after.length === 0 || adds(before, after);
}

function fetchesMore(before: AgentPolicy["delegateMedia"], after: AgentPolicy["delegateMedia"]): boolean {
  return (
    (after.allowObjectRefs && !before.allowObjectRefs) ||
    after.maxBytes > before.maxBytes ||
    widens(before.allowedMimeTypes, after.allowedMimeTypes)
  );
}

/** Everything that may be raised; 0 is no limit where it says so. */
function limitsOf(policy: AgentPolicy): number[] {
  const orNone = (limit: number) => (limit === 0 ? Number.POSITIVE_INFINITY : limit);
  const { timeoutSec, maxDelegationDepth, maxConcurrent, maxQueued, quotas, eventsPerMin } = policy;
  return [
    timeoutSec.default,
    timeoutSec.max,
    maxDelegationDepth,
    orNone(maxConcurrent),
    maxQueued,
    orNone(quotas.open),
    orNone(quotas.openPerPeer),
    orNone(eventsPerMin),
    -policy.statusEverySec,
  ];
}

function showsMore(before: AgentPolicy, after: AgentPolicy): boolean {
  return (after.discoverable && !before.discoverable) || widens(before.exposeSkills, after.exposeSkills);
}
