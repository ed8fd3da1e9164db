import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { ConfigError, findingsOf, pathText } from "../../shared/config/config-error.ts";
import type { HostedAgent } from "../../shared/config/deployment.ts";
import { fields } from "../../shared/config/host-agent.ts";
import { namingFields } from "../../shared/config/known-fields.ts";
import {
  asWritten,
  type Canonical,
  canonicalPolicy,
  foreignField,
} from "../../shared/config/legacy-policy.ts";
import { readIfThere } from "../../shared/config/named-files.ts";
import { type AgentPolicy, agentPolicy } from "../../shared/config/policy.ts";
import { readYaml } from "../../shared/config/yaml-source.ts";
import { isPolicyField, POLICY_FIELDS, type PolicyField } from "../../shared/policy/changes.ts";
import type { PolicyFields } from "../../shared/policy/runtime-policy.ts";
import { CliError, EXIT } from "../errors.ts";

/** How a change is written on a command line. */
export interface Written {
  /** `key=value` with a value in YAML; a key may name a part, as `timeoutSec.max` does. */
  readonly set: readonly string[];
  /** Fields that the file is to say again. */
  readonly unset: readonly string[];
  /** A YAML file of fields; `null` for those that `agents.yaml` is to say again. */
  readonly file?: string | undefined;
}

/** What is to be otherwise in the table. */
export interface PolicyRequest {
  readonly set: PolicyFields;
  readonly unset: readonly PolicyField[];
  /** Names that are read as others. */
  readonly legacy: Canonical["legacy"];
}

/**
 * Reads a change.
 *
 * @param now the policy in force, of which a part may be named
 * @throws CliError `usage` that names what is not as expected
 */
export function readRequest(written: Written, now: AgentPolicy): PolicyRequest {
  const raw: Record<string, unknown> = written.file === undefined ? {} : fileFields(written.file);
  for (const text of written.set) setOne(raw, text, now);
  const nulls = Object.keys(raw).filter((name) => raw[name] === null);
  const names = canonicalPolicy(
    Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)),
  );
  const [foreign] = names.findings;
  if (foreign !== undefined) throw unfit(`${pathText(foreign.path)}: ${foreign.message}`);
  const unset = [...nulls, ...written.unset].map(fieldNamed);
  const set = checked(names);
  if (unset.length === 0 && Object.keys(set).length === 0)
    throw unfit("nothing is to be changed: expected --set, --unset or --file");
  return { set, unset, legacy: names.legacy };
}

function unfit(message: string): CliError {
  return new CliError(EXIT.usage, message);
}

function fieldNamed(name: string): PolicyField {
  if (isPolicyField(name)) return name;
  throw unfit(
    `${name}: ${foreignField(name) ?? `unknown field; expected one of ${POLICY_FIELDS.join(", ")}`}`,
  );
}

function fileFields(path: string): Record<string, unknown> {
  try {
    const text = readIfThere(path);
    if (text === undefined) throw unfit(`--file ${path}: there is no such file`);
    const read = fields.safeParse(readYaml(path, text).value ?? {});
    if (!read.success) throw unfit(`--file ${path}: expected a map of fields`);
    return { ...read.data };
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(EXIT.usage, error.message, { cause: error });
    throw error;
  }
}

function setOne(raw: Record<string, unknown>, text: string, now: AgentPolicy): void {
  const at = text.indexOf("=");
  if (at < 1) throw unfit(`--set ${text}: expected key=value`);
  const [name = "", part, ...more] = text.slice(0, at).split(".");
  const value = yamlOf(name, text.slice(at + 1));
  if (part === undefined) {
    raw[name] = value;
    return;
  }
  const whole = fields.safeParse(raw[name] ?? now[fieldNamed(name)]);
  if (!whole.success || more.length > 0) throw unfit(`--set ${text.slice(0, at)}: ${name} has no such part`);
  raw[name] = { ...whole.data, [part]: value };
}

function yamlOf(name: string, text: string): unknown {
  try {
    return parse(text, { prettyErrors: false });
  } catch (cause) {
    throw new CliError(EXIT.usage, `--set ${name}: expected a value in YAML, such as 3, true or '["*"]'`, {
      cause,
    });
  }
}

/** The values as a policy has them, what is left out of each filled in. */
function checked(names: Canonical): PolicyFields {
  const given = Object.keys(names.fields).map(fieldNamed);
  const read = agentPolicy.safeParse(names.fields, namingFields);
  if (!read.success) {
    const findings = findingsOf(read.error, names.fields).map((of) => asWritten(names, of));
    throw unfit(findings.map(({ path, message }) => `${pathText(path)}: ${message}`).join("; "));
  }
  return picked(read.data, given);
}

function picked(policy: AgentPolicy, given: readonly PolicyField[]): PolicyFields {
  return Object.fromEntries(Object.entries(policy).filter(([name]) => given.some((field) => field === name)));
}

/** What the table says after a change. */
export function appliedTo(
  known: PolicyFields,
  { set, unset }: Pick<PolicyRequest, "set" | "unset">,
): PolicyFields {
  return {
    ...Object.fromEntries(Object.entries(known).filter(([name]) => !unset.some((of) => of === name))),
    ...set,
  };
}

/**
 * Looks whether an agent can have a policy.
 *
 * @returns what a person should know of it, a line each
 * @throws CliError `usage` that names the field
 */
export function checkFits(agent: HostedAgent, after: AgentPolicy): string[] {
  const { skills, policy: file, remote } = agent;
  const known = skills.map(({ slug }) => slug);
  const isKnown = (slug: string) =>
    known.includes(slug) || (slug === "general_task" && known.includes("task"));
  const strange = {
    acceptSkills: isDeepStrictEqual(after.acceptSkills, file.acceptSkills)
      ? []
      : after.acceptSkills.filter((slug) => !isKnown(slug)),
    exposeSkills: isDeepStrictEqual(after.exposeSkills, file.exposeSkills)
      ? []
      : after.exposeSkills.map(({ id }) => id).filter((id) => !known.includes(id)),
  };
  const told = Object.entries(strange).filter(([, slugs]) => slugs.length > 0);
  const [field] = told[0] ?? [];
  if (remote === undefined && field !== undefined)
    throw unfit(`${field}: expected a skill of the agent: ${known.join(", ")}`);
  if (file.delegateTargets.length === 0 && after.delegateTargets.length > 0)
    throw unfit(
      "delegateTargets: agents.yaml has none for the agent, so that events for it are not read: name one there and deploy; from then on the table may say which (docs/policy.md)",
    );
  // The card of a remote agent comes and goes, and so do its skills: agents.yaml takes any, too (docs/remotes.md).
  return told.map(
    ([name, slugs]) =>
      `${name}: agents.yaml names no skill ${slugs.join(", ")} of the agent: it counts while the card of ${remote} has it`,
  );
}
