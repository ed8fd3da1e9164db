import { dirname, resolve } from "node:path";
import * as z from "zod";
import type { Agent } from "../agents/define.ts";
import { unfitDefault } from "./choosing.ts";
import { type AgentFunction, type CloudConfig, cloudConfig, MAX_OWN_FUNCTIONS } from "./cloud.ts";
import { commandConfig } from "./command.ts";
import { below, type Finding, findingsOf, UNKNOWN } from "./config-error.ts";
import {
  commandRuntime,
  type DeploymentConfig,
  deploymentName,
  type HostedAgent,
  keptSections,
  natsFields,
} from "./deployment.ts";
import { emptyRemotes, frontAgents, type Hostable, REMOTE } from "./front-agents.ts";
import { fields, hostAgent, strangeDefaults } from "./host-agent.ts";
import { namingFields } from "./known-fields.ts";
import { asWritten, canonicalPolicy, type LegacyField } from "./legacy-policy.ts";
import { type ReadFile, readAuthority, readIfThere } from "./named-files.ts";
import { nearest } from "./nearest.ts";
import { agentPolicy } from "./policy.ts";
import { closedPlaces } from "./remote-places.ts";
import { emptyHeaders, legacyRemotes, type RemoteConfig, takenNames } from "./remotes.ts";
import { readYaml } from "./yaml-source.ts";

/** The deployment's name when there is no `agents.yaml`; its agents then work for the `sluice` command alone. */
const UNNAMED = "local";

/** `agents.yaml`; each field is explained in docs/configuration.md, which is written from here (`npm run docs`). */
export const operatorFile = z.strictObject({
  deployment: deploymentName,
  nats: z
    .strictObject({
      ...natsFields,
      tls: z
        .strictObject({
          ca: z
            .string()
            .regex(/^file:\S.*$/, "expected file:PATH")
            .optional()
            .describe("PEM certificates of the authority that signed the servers', read at synth."),
        })
        .optional()
        .describe("Whom the functions trust."),
    })
    .prefault({})
    .describe("How the functions reach NATS."),
  defaults: fields.default({}).describe("A [policy](#policy) for every agent; an agent's own fields win."),
  agents: z
    .record(z.string(), fields.optional())
    .default({})
    .describe(
      "By agent id: the fields of a [policy](#policy), [what is an agent's alone](#an-agents-own-fields), and settings of its own.",
    ),
  cloud: cloudConfig.prefault({}).describe("How the stack is put into an AWS account: [cloud](#cloud)."),
  command: commandConfig.prefault({}).describe("What the command `sluice` may do."),
  ...keptSections,
});

/** All that the operator's file says: what the functions know, and what only the stack does. */
export interface OperatorConfig {
  readonly deployment: DeploymentConfig;
  readonly cloud: CloudConfig;
  /** The agents that have a work function of their own, by id. */
  readonly functions: AgentFunctions;
  /** What is still read but better written otherwise, a line each, with file, line and field. */
  readonly notes: readonly string[];
  /** Fields that have another name now, by where they stand: `defaults`, or an agent's id. */
  readonly legacy: ReadonlyMap<string, readonly LegacyField[]>;
}
export type AgentFunctions = ReadonlyMap<string, AgentFunction>;

/** What can be read in a file that is not sound otherwise, so that all that is wrong is told at once. */
const readable = z
  .object({
    deployment: deploymentName.catch(UNNAMED),
    defaults: fields.catch({}),
    agents: z.record(z.string(), fields.optional()).catch({}),
    nats: operatorFile.shape.nats.optional().catch(undefined),
    remotes: keptSections.remotes.catch(undefined),
    outbound: keptSections.outbound.catch(undefined),
    choosing: keptSections.choosing.catch(undefined),
  })
  .catch({ deployment: UNNAMED, defaults: {}, agents: {} });

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
): OperatorConfig {
  const text = read(path);
  const source =
    text === undefined
      ? readYaml(
          "(no agents.yaml)",
          `deployment: ${UNNAMED}\ndefaults: { acceptFromRuntimes: [${commandRuntime(UNNAMED)}] }`,
        )
      : readYaml(path, text);
  const value = withoutNulls(source.value);
  const parsed = operatorFile.safeParse(value ?? {}, namingFields);
  const sound = parsed.success ? parsed.data : readable.parse(value ?? {});
  const empty = emptyRemotes(source.value);
  const unread = new Set(parsed.error?.issues.map(({ path: [section] }) => section));
  const known = unread.has("remotes") ? undefined : (sound.remotes ?? []);
  const of = frontAgents({ ...sound, empty }, agents, known);
  const all = [...agents, ...of.fronts];
  const { hosted, functions, legacy, findings } = hostAgents(all, sound, empty);
  findings.push(...of.findings, ...emptyHeaders(source.value));
  findings.push(...takenNames(known ?? [], namesOf(sound.deployment, hosted)));
  if (!unread.has("outbound")) findings.push(...closedPlaces(known ?? [], sound.outbound?.allow ?? []));
  findings.push(...unfitDefault(sound.choosing ?? {}, all));
  const folder = dirname(resolve(path));
  const authority = readAuthority(sound.nats?.tls?.ca, folder, read);
  findings.push(...authority.findings);
  if (!parsed.success) throw source.error([...findingsOf(parsed.error, value), ...findings]);
  if (findings.length > 0) throw source.error(findings);
  const { deployment, nats, cloud, defaults: _, agents: __, command: ___, remotes, ...kept } = parsed.data;

  return {
    deployment: {
      deployment,
      nats: {
        servers: nats.servers,
        credentials: absolute(nats.credentials, folder),
        ...(authority.ca !== undefined && { ca: authority.ca }),
      },
      agents: hosted,
      ...(remotes !== undefined && { remotes: remotes.map((of) => withAbsolute(of, folder)) }),
      ...kept,
    },
    cloud,
    functions,
    notes: source.told([...legacyFields(legacy), ...legacyRemotes(value), ...of.notes]),
    legacy,
  };
}

/** What is said of policies that are written by older names. */
function legacyFields(legacy: OperatorConfig["legacy"]): Finding[] {
  return [...legacy].flatMap(([where, fields]) =>
    fields.map(({ field, canonical, unused }) => ({
      path: where === "defaults" ? [where, field] : ["agents", where, field],
      message: unused
        ? `legacy; counts for nothing beside ${canonical}: take it out`
        : `legacy; write ${canonical}`,
    })),
  );
}

/** By what a task may be meant for one of ours, or come from the command. */
function namesOf(deployment: string, hosted: readonly HostedAgent[]): Set<string> {
  return new Set([commandRuntime(deployment), ...hosted.flatMap(({ id, runtime }) => [id, runtime])]);
}

function withAbsolute({ auth, ...of }: RemoteConfig, folder: string): RemoteConfig {
  return auth === undefined
    ? of
    : { ...of, auth: { ...auth, credentials: absolute(auth.credentials, folder) } };
}

/** All agents as the file has them, and all that is wrong with what it says of them. */
function hostAgents(
  agents: readonly Hostable[],
  { deployment, defaults, agents: entries }: z.output<typeof readable>,
  empty: ReadonlySet<string>,
): Pick<OperatorConfig, "functions" | "legacy"> & { hosted: HostedAgent[]; findings: Finding[] } {
  const names = canonicalPolicy(defaults);
  const legacy = new Map([["defaults", names.legacy]]);
  const unsound = agentPolicy.safeParse(names.fields, namingFields);
  const unfit = unsound.success
    ? strangeDefaults(names.fields, unsound.data, agents)
    : findingsOf(unsound.error, names.fields);
  const findings = [...names.findings, ...unfit.map((of) => asWritten(names, of))].map((of) =>
    below(["defaults"], of),
  );
  for (const [id, entry] of Object.entries(entries))
    if (entry?.remote === undefined && !empty.has(id) && !agents.some((agent) => agent.id === id))
      findings.push(unknownAgent(id, Object.keys(entry ?? {}), agents));
  const functions = new Map<string, AgentFunction>();
  const hosted = agents.flatMap((agent) => {
    // What is wrong with the defaults is told once.
    const reading = hostAgent(
      deployment,
      agent,
      unsound.success ? names.fields : {},
      entries[agent.id] ?? {},
    );
    findings.push(...reading.findings.map((of) => below(["agents", agent.id], of)));
    legacy.set(agent.id, reading.legacy);
    if (reading.function !== undefined) functions.set(agent.id, reading.function);
    return reading.hosted ?? [];
  });
  findings.push(...sharedRuntimes(hosted), ...takenRuntimes(deployment, hosted));
  if (functions.size > MAX_OWN_FUNCTIONS)
    findings.push({
      path: ["agents"],
      message: `expected at most ${MAX_OWN_FUNCTIONS} agents with a function of their own, got ${functions.size}`,
    });
  return { hosted, functions, legacy, findings };
}

/** Ids are made safe for NATS, so that two may become one (docs/wire.md, agent id): each would take the other's tasks. */
function sharedRuntimes(hosted: readonly HostedAgent[]): Finding[] {
  return hosted.flatMap(({ id, runtime }, at) => {
    const first = hosted.slice(0, at).find((of) => of.runtime === runtime);
    if (first === undefined) return [];
    const message = `expected agents whose ids on NATS differ, got ${runtime} for ${first.id} and ${id}: rename one`;
    return [{ path: ["agents", id], message }];
  });
}

/** The command asks as a peer of its own. */
function takenRuntimes(deployment: string, hosted: readonly HostedAgent[]): Finding[] {
  const taken = commandRuntime(deployment);
  return hosted
    .filter(({ runtime }) => runtime === taken)
    .map(({ id }) => ({
      path: ["agents", id],
      message: `expected another id: on NATS the command sluice is ${taken} itself`,
    }));
}

/** One without a file may be meant to be a remote one. */
function unknownAgent(id: string, keys: readonly string[], agents: readonly Hostable[]): Finding {
  const meant = keys.find((key) => nearest(key, [REMOTE]).length > 0);
  if (meant !== undefined) return { path: ["agents", id, meant], message: `${UNKNOWN}; expected ${REMOTE}` };
  const known = agents.map((agent) => agent.id).join(", ");
  return { path: ["agents", id], message: `expected an agent that has a file: ${known || "there is none"}` };
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
