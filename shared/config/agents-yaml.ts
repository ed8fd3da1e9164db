import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as z from "zod";
import type { Agent } from "../agents/define.ts";
import { isSafeAgentId, runtimeAgentId } from "../wire/ids.ts";
import { type Finding, findingsOf, UNKNOWN } from "./config-error.ts";
import {
  type AgentPolicy,
  agentPolicy,
  credentials,
  type DeploymentConfig,
  deploymentName,
  type HostedAgent,
  keptSections,
  policyFields,
  serverUrl,
} from "./deployment.ts";
import { readYaml, type YamlSource } from "./yaml-source.ts";

/** Who may ask the shipped agents when there is no `agents.yaml`: the `sluice` command. */
export const LOCAL_REQUESTER = "local-cli";

const fields = z.record(z.string(), z.unknown());
const file = z.strictObject({
  deployment: deploymentName,
  nats: z
    .strictObject({
      servers: z.array(serverUrl).min(1).optional(),
      credentials: credentials.optional(),
      tls: z
        .strictObject({
          ca: z
            .string()
            .regex(/^file:\S.*$/, "expected file:PATH")
            .optional(),
        })
        .optional(),
    })
    .prefault({}),
  defaults: fields.default({}),
  agents: z.record(z.string(), fields.optional()).default({}),
  ...keptSections,
});

/** An agent's field that is neither of its policy nor a setting of its own. */
const DISPLAY_NAME = "displayName";

/**
 * Reads the operator's file for the agents that there are. An agent that the file does not name is hosted with the
 * file's defaults; without a file the deployment is `local` and every agent works for the local command alone.
 *
 * @param path `agents.yaml`; paths inside it are relative to its folder
 * @param read reads a file, or gives `undefined` if there is none
 * @throws ConfigError with a line for each field that is not as expected: file, line, field, expectation
 */
export function readAgentsYaml(
  path: string,
  agents: readonly Agent[],
  read: ReadFile = readIfThere,
): DeploymentConfig {
  const text = read(path);
  const source =
    text === undefined
      ? readYaml(
          "(no agents.yaml)",
          `deployment: local\ndefaults: { acceptFromRuntimes: [${LOCAL_REQUESTER}] }`,
        )
      : readYaml(path, text);
  const value = withoutNulls(source.value);
  const parsed = file.safeParse(value ?? {});
  if (!parsed.success) throw source.error(explained(findingsOf(parsed.error, value)));
  const { deployment, nats, defaults, agents: entries, ...kept } = parsed.data;

  const unsound = agentPolicy.safeParse(defaults);
  if (!unsound.success)
    throw source.error(findingsOf(unsound.error, defaults).map((of) => below(["defaults"], of)));
  const unknown = Object.keys(entries).filter((id) => !agents.some((agent) => agent.id === id));
  if (unknown.length > 0) throw source.error(unknown.map((id) => unknownAgent(id, agents)));

  const findings: Finding[] = [];
  const hosted = agents.map((agent) => {
    const reading = hostAgent(deployment, agent, defaults, entries[agent.id] ?? {});
    findings.push(...reading.findings.map((of) => below(["agents", agent.id], of)));
    return reading.hosted;
  });
  if (findings.length > 0) throw source.error(findings);

  const folder = dirname(resolve(path));
  const authority = nats.tls?.ca;
  return {
    deployment,
    nats: {
      servers: nats.servers ?? ["nats://127.0.0.1:4222"],
      credentials: absolute(nats.credentials ?? "none", folder),
      ...(authority !== undefined && {
        ca: readAuthority(resolve(folder, authority.slice("file:".length)), read, source),
      }),
    },
    agents: hosted.filter((of) => of !== undefined),
    ...kept,
  };
}

interface HostReading {
  readonly hosted?: HostedAgent;
  readonly findings: readonly Finding[];
}

function hostAgent(
  deployment: string,
  agent: Agent,
  defaults: Readonly<Record<string, unknown>>,
  entry: Readonly<Record<string, unknown>>,
): HostReading {
  const { [DISPLAY_NAME]: displayName = agent.id, ...rest } = entry;
  const own = Object.entries(rest);
  const ownPolicy = Object.fromEntries(own.filter(([key]) => key in policyFields));
  const settings = Object.fromEntries(own.filter(([key]) => !(key in policyFields)));
  const merged = { ...defaults, ...ownPolicy, ...mergedTimeout(defaults, ownPolicy) };

  const policy = agentPolicy.safeParse(merged);
  const parsedSettings = agent.settings.safeParse(settings);
  const name = z.string().min(1).max(128).safeParse(displayName);
  const runtime = runtimeOf(deployment, agent.id);
  const findings = [
    ...(policy.success ? strangeSkills(agent, ownPolicy, policy.data) : findingsOf(policy.error, merged)),
    ...(parsedSettings.success ? [] : findingsOf(parsedSettings.error, settings).filter(isKnownField)),
    ...unknownSettings(agent, settings),
    ...(name.success ? [] : findingsOf(name.error, displayName).map((of) => below([DISPLAY_NAME], of))),
    ...(runtime === undefined ? [unsafeId(deployment, agent.id)] : []),
  ];
  if (findings.length > 0 || !policy.success || !name.success || runtime === undefined) return { findings };
  return {
    findings,
    hosted: {
      id: agent.id,
      runtime,
      channelRef: agent.id,
      displayName: name.data,
      description: agent.description,
      version: agent.version,
      skills: Object.entries(agent.skills).map(([slug, of]) => ({
        slug,
        name: of.name,
        description: of.description,
        tags: [...of.tags],
      })),
      policy: policy.data,
      settings,
    },
  };
}

/** The two times of `timeoutSec` are inherited one by one. */
function mergedTimeout(
  defaults: Readonly<Record<string, unknown>>,
  own: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const inherited = fields.safeParse(defaults.timeoutSec);
  const written = fields.safeParse(own.timeoutSec);
  if (!inherited.success || !written.success) return {};
  return { timeoutSec: { ...inherited.data, ...written.data } };
}

/** `general_task` is another name of `task` (docs/wire.md, skill ids). */
function strangeSkills(agent: Agent, own: Readonly<Record<string, unknown>>, policy: AgentPolicy): Finding[] {
  if (own.acceptSkills === undefined) return [];
  const known = Object.keys(agent.skills);
  return policy.acceptSkills.flatMap((slug, i) =>
    known.includes(slug) || (slug === "general_task" && known.includes("task"))
      ? []
      : [{ path: ["acceptSkills", i], message: `expected a skill of the agent: ${known.join(", ")}` }],
  );
}

/** A plain object schema drops the keys that it does not know; a field misspelt must not get lost like that. */
function unknownSettings(agent: Agent, settings: Readonly<Record<string, unknown>>): Finding[] {
  const { settings: schema } = agent;
  if (!(schema instanceof z.ZodObject)) return [];
  const { catchall } = schema.def;
  if (catchall !== undefined && !(catchall instanceof z.ZodNever)) return [];
  const known = Object.keys(schema.shape);
  const all = [DISPLAY_NAME, ...Object.keys(policyFields), ...known].join(", ");
  return Object.keys(settings)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: [key], message: `${UNKNOWN}; expected one of ${all}` }));
}

function isKnownField(finding: Finding): boolean {
  return finding.message !== UNKNOWN || finding.path.length > 1;
}

/** The id on NATS, if there is one that every peer accepts. */
function runtimeOf(deployment: string, id: string): string | undefined {
  try {
    const runtime = runtimeAgentId(deployment, id, `${deployment}\0${id}`);
    return isSafeAgentId(runtime) ? runtime : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function unsafeId(deployment: string, id: string): Finding {
  return {
    path: [],
    message: `expected a deployment and an agent whose names make an id that peers accept, got ${deployment}-${id} (docs/wire.md, agent id)`,
  };
}

function unknownAgent(id: string, agents: readonly Agent[]): Finding {
  const known = agents.map((agent) => agent.id).join(", ");
  return { path: ["agents", id], message: `expected an agent that has a file: ${known || "there is none"}` };
}

/** Says of an unknown section which there are. */
function explained(findings: readonly Finding[]): Finding[] {
  const known = Object.keys(file.shape).join(", ");
  return findings.map((of) =>
    of.message === UNKNOWN && of.path.length === 1
      ? { ...of, message: `${UNKNOWN}; expected one of ${known}` }
      : of,
  );
}

function below(path: readonly PropertyKey[], finding: Finding): Finding {
  return { ...finding, path: [...path, ...finding.path] };
}

/** Reads a file, or gives `undefined` if there is none. */
export type ReadFile = (path: string) => string | undefined;

/** The file's text; `undefined` if there is no such file. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function readAuthority(path: string, read: ReadFile, source: YamlSource): string {
  const text = read(path);
  const field = ["nats", "tls", "ca"];
  if (text === undefined) throw source.error([{ path: field, message: `expected a file, ${path} is none` }]);
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw source.error([{ path: field, message: `expected certificates as PEM text in ${path}` }]);
  return text;
}

/** The functions run elsewhere: a path that they are given must not depend on where. */
function absolute(of: string, folder: string): string {
  return of.startsWith("file:") ? `file:${resolve(folder, of.slice("file:".length))}` : of;
}

/** `null` means the default, as if the field were not there. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, of]) => of !== null)
      .map(([key, of]) => [key, withoutNulls(of)]),
  );
}
