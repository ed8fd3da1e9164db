import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { AgentPolicy } from "../../shared/config/policy.ts";
import { changesOf, type FieldChange, type Risk, risksOf } from "../../shared/policy/changes.ts";
import { digestOf } from "../../shared/policy/confirmation.ts";
import type { StoredPlan } from "../../shared/policy/dynamodb-policies.ts";
import { effectivePolicy, type PolicyFields } from "../../shared/policy/runtime-policy.ts";
import { CliError, EXIT } from "../errors.ts";
import { operatorName } from "../operator.ts";
import type { Output } from "../output.ts";
import { cleanLine } from "../text.ts";
import type { OpenPolicy } from "./open.ts";
import { appliedTo, checkFits, type PolicyRequest } from "./request.ts";

/** A change of a policy, and what it comes to. */
export interface Change {
  /** The version that it is made to. */
  readonly base: number;
  /** What the table says after it. */
  readonly fields: PolicyFields;
  readonly before: AgentPolicy;
  readonly after: AgentPolicy;
  readonly changes: readonly FieldChange[];
  readonly risks: readonly Risk[];
  /** What a person should know besides. */
  readonly notes: readonly string[];
  /** Whether the table says already what it is to. */
  readonly isMade: boolean;
}

/** Who does it, as far as this machine knows. */
export function operator(): string {
  return operatorName();
}

/**
 * What a change comes to, made to the policy as it is now.
 *
 * @param request may depend on the policy in force
 * @throws CliError `usage` when the agent cannot have it
 */
export async function changeOf(
  { store, agent }: OpenPolicy,
  request: (now: AgentPolicy) => Pick<PolicyRequest, "set" | "unset">,
): Promise<Change> {
  const known = await store.policyOf(agent.runtime);
  const before = effectivePolicy(agent.policy, known);
  const fields = appliedTo(known?.fields ?? {}, request(before));
  return comesTo(agent, known, fields);
}

/** What it comes to when the table says these fields instead of what is known. */
export function comesTo(
  agent: OpenPolicy["agent"],
  known: { readonly version: number; readonly fields: PolicyFields } | undefined,
  fields: PolicyFields,
): Change {
  const base = known?.version ?? 0;
  const before = effectivePolicy(agent.policy, known);
  const after = effectivePolicy(agent.policy, { version: base + 1, fields });
  const notes = checkFits(agent, after);
  return {
    base,
    fields,
    before,
    after,
    changes: changesOf(before, after),
    risks: risksOf(before, after),
    notes,
    isMade: isDeepStrictEqual(known?.fields ?? {}, fields),
  };
}

/** What makes two plans of the same change different: a token is for one of them alone. */
export function planOf({ base, fields }: Change): StoredPlan {
  return { id: `chg_${randomBytes(8).toString("hex")}`, at: Date.now(), by: operator(), base, fields };
}

/** What a token confirms of a plan: all of it. */
export function digestOfPlan(runtime: string, { usedAt: _, ...plan }: StoredPlan): string {
  return digestOf({ runtime, ...plan });
}

/** Makes a change. @returns what became of it */
export async function make(
  { store, agent }: OpenPolicy,
  change: Change,
  of: { readonly command: string; readonly plan?: string },
): Promise<"changed" | "conflict" | "used"> {
  const entry = { at: Date.now(), by: operator(), changes: [...change.changes], ...of };
  return store.change(agent.runtime, change, entry);
}

export function meanwhile(runtime: string): CliError {
  return new CliError(
    EXIT.failed,
    `version_conflict: the policy of ${runtime} was changed meanwhile; look at it, and plan anew`,
  );
}

/** The longest value of a field that is shown whole. */
const MAX_VALUE = 2_000;

/** A value as it is shown and written: on one line. */
export function valueText(value: unknown): string {
  return cleanLine(typeof value === "string" ? value : JSON.stringify(value), MAX_VALUE);
}

/** Shows what a change does. */
export function tellChange(
  out: Output,
  { changes, risks, notes }: Pick<Change, "changes" | "risks" | "notes">,
): void {
  for (const { field, before, after } of changes)
    out.line(`  ${field}: ${valueText(before)} → ${valueText(after)}`);
  if (risks.length > 0) out.line(`  risks: ${risks.join(", ")}`);
  for (const note of notes) out.note(note);
}
