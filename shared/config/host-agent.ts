import * as z from "zod";
import { agentId, blankedIn, runtimeAgentId } from "../wire/ids.ts";
import { type AgentFunction, agentFunction, MAX_OWN_FUNCTIONS } from "./cloud.ts";
import { below, type Finding, findingsOf, UNKNOWN } from "./config-error.ts";
import type { HostedAgent } from "./deployment.ts";
import { type Hostable, REMOTE } from "./front-agents.ts";
import { namingFields } from "./known-fields.ts";
import { asWritten, canonicalPolicy, type LegacyField } from "./legacy-policy.ts";
import { type AgentPolicy, agentPolicy, policyFields } from "./policy.ts";

/** Fields that are still to be read. */
export type Fields = Readonly<Record<string, unknown>>;
export const fields = z.record(z.string(), z.unknown());

/** An agent's fields that are neither of its policy nor settings of its own. */
export const ownFields = {
  displayName: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("What the agent is called where persons see it. Without it its id."),
  function: agentFunction
    .optional()
    .describe(
      `A work function and a queue \`work-<id>\` of its own: neither its load nor its keys are another's. \`{}\` is enough; at most ${MAX_OWN_FUNCTIONS} agents may have one. Without it the agent shares the function \`work\` with all others.`,
    ),
  remote: z
    .string()
    .optional()
    .describe(
      "The name of one of [`remotes`](#sections): the agent is that one, asked over A2A, and has no file of its own ([remotes.md](remotes.md#an-agent-that-is-a-remote-one)).",
    ),
};
const DISPLAY_NAME = "displayName" satisfies keyof typeof ownFields;
const FUNCTION = "function" satisfies keyof typeof ownFields;

/** An agent as this deployment runs it, or what is wrong with its entry. */
interface HostReading {
  readonly hosted?: HostedAgent;
  /** The work function of its own, if it has one. */
  readonly function?: AgentFunction;
  /** Fields of its own that have another name now. */
  readonly legacy: readonly LegacyField[];
  readonly findings: readonly Finding[];
}

/**
 * Joins what the author wrote with what the operator did.
 *
 * @param defaults the file's, already found to be sound
 * @param entry the agent's own; findings name fields of it
 */
export function hostAgent(deployment: string, agent: Hostable, defaults: Fields, entry: Fields): HostReading {
  const { [DISPLAY_NAME]: displayName, [FUNCTION]: asked, [REMOTE]: _, ...rest } = entry;
  const names = canonicalPolicy(rest, (name) => settingNames(agent).includes(name));
  const { legacy } = names;
  const own = Object.entries(names.fields);
  const ownPolicy = Object.fromEntries(own.filter(([key]) => Object.hasOwn(policyFields, key)));
  const settings = Object.fromEntries(own.filter(([key]) => !Object.hasOwn(policyFields, key)));
  const merged = { ...defaults, ...ownPolicy, ...mergedTimeout(defaults, ownPolicy) };

  const policy = agentPolicy.safeParse(merged, namingFields);
  const parsedSettings = agent.settings.safeParse(settings, namingFields);
  const name = ownFields.displayName.safeParse(displayName);
  const runtime = runtimeOf(deployment, agent.id);
  const work = asked === undefined ? undefined : agentFunction.safeParse(asked, namingFields);
  const unfit = policy.success
    ? strangeSkills(agent, ownPolicy, policy.data)
    : findingsOf(policy.error, merged);
  const findings = [
    ...names.findings,
    ...unfit.map((of) => asWritten(names, of)),
    ...(parsedSettings.success ? [] : findingsOf(parsedSettings.error, settings).filter(isKnownField)),
    ...unknownSettings(agent, settings),
    ...(name.success ? [] : findingsOf(name.error, displayName).map((of) => below([DISPLAY_NAME], of))),
    ...(work?.success === false ? findingsOf(work.error, asked).map((of) => below([FUNCTION], of)) : []),
    ...(asked === undefined || isQueueable(agent.id) ? [] : [deadName(agent.id)]),
    ...(runtime === undefined ? [unsafeId(deployment, agent.id)] : []),
  ];
  if (findings.length > 0 || !policy.success || !name.success || runtime === undefined)
    return { findings, legacy };
  return {
    findings,
    legacy,
    ...(work?.success === true && { function: work.data }),
    hosted: {
      id: agent.id,
      runtime,
      channelRef: agent.id,
      displayName: name.data ?? agent.id,
      description: agent.description,
      version: agent.version,
      skills: Object.entries(agent.skills).map(([slug, of]) => ({
        slug,
        name: of.name,
        description: of.description,
        tags: [...of.tags],
      })),
      ...(agent.remote !== undefined && { remote: agent.remote }),
      policy: policy.data,
      settings,
    },
  };
}

/** The two times of `timeoutSec` are inherited one by one. */
function mergedTimeout(defaults: Fields, own: Fields): Record<string, unknown> {
  const inherited = fields.safeParse(defaults.timeoutSec);
  const written = fields.safeParse(own.timeoutSec);
  if (!inherited.success || !written.success) return {};
  return { timeoutSec: { ...inherited.data, ...written.data } };
}

function strangeSkills(agent: Hostable, own: Fields, policy: AgentPolicy): Finding[] {
  // Those of a remote's card are not known before it is asked for.
  if (agent.remote !== undefined) return [];
  return unknownSkills(own, policy, Object.keys(agent.skills), "a skill of the agent");
}

/**
 * Skills of the file's defaults that no agent has: each agent may lack some of them, but what all lack is a slip, for which
 * every task would be refused.
 *
 * @param defaults as they are written, in canonical names; findings name fields of them
 * @param policy the same, read
 */
export function strangeDefaults(
  defaults: Fields,
  policy: AgentPolicy,
  agents: readonly Hostable[],
): Finding[] {
  if (agents.length === 0 || agents.some(({ remote }) => remote !== undefined)) return [];
  const known = [...new Set(agents.flatMap(({ skills }) => Object.keys(skills)))];
  return unknownSkills(defaults, policy, known, "a skill of one of the agents");
}

/** `general_task` is another name of `task` (docs/wire.md, skill ids). */
function unknownSkills(
  written: Fields,
  { acceptSkills, exposeSkills }: AgentPolicy,
  known: readonly string[],
  what: string,
): Finding[] {
  const isKnown = (slug: string) =>
    known.includes(slug) || (slug === "general_task" && known.includes("task"));
  const finding = (path: Finding["path"]) => ({ path, message: `expected ${what}: ${known.join(", ")}` });
  return [
    ...(written.acceptSkills === undefined ? [] : acceptSkills).flatMap((slug, i) =>
      isKnown(slug) ? [] : [finding(["acceptSkills", i])],
    ),
    ...(written.exposeSkills === undefined ? [] : exposeSkills).flatMap(({ id }, i) =>
      known.includes(id) ? [] : [finding(["exposeSkills", i, "id"])],
    ),
  ];
}

/** The names of an agent's own settings, as far as its schema lists them. */
function settingNames({ settings }: Hostable): string[] {
  return settings instanceof z.ZodObject ? Object.keys(settings.shape) : [];
}

/** A plain object schema drops the keys that it does not know; a field misspelt must not get lost like that. */
function unknownSettings(agent: Hostable, settings: Fields): Finding[] {
  const { settings: schema } = agent;
  if (!(schema instanceof z.ZodObject)) return [];
  const { catchall } = schema.def;
  if (catchall !== undefined && !(catchall instanceof z.ZodNever)) return [];
  const known = settingNames(agent);
  const all = [DISPLAY_NAME, FUNCTION, REMOTE, ...Object.keys(policyFields), ...known].join(", ");
  return Object.keys(settings)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: [key], message: `${UNKNOWN}; expected one of ${all}` }));
}

function isKnownField(finding: Finding): boolean {
  return !finding.message.startsWith(UNKNOWN) || finding.path.length > 1;
}

/** Whether the names of its queue and of another's dead-letter queue are different: `work-<id>`, `work-<id>-dead`. */
function isQueueable(id: string): boolean {
  return !/(^|-)dead$/i.test(id);
}

function deadName(id: string): Finding {
  return {
    path: [FUNCTION],
    message: `expected an agent whose queue is not called like a dead-letter queue, got work-${id}`,
  };
}

/** The id on NATS, if there is one that every peer accepts. */
function runtimeOf(deployment: string, id: string): string | undefined {
  try {
    const runtime = runtimeAgentId(deployment, id, `${deployment}\0${id}`);
    // The agent's own name is on its card as well, though the id on NATS may only hold a digest of it.
    return blankedIn(runtime) === undefined && blankedIn(id) === undefined ? runtime : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function unsafeId(deployment: string, id: string): Finding {
  const name = `${deployment}-${id}`;
  const blanked = blankedIn(name) ?? blankedIn(id);
  const why =
    blanked === undefined
      ? (agentId().safeParse(name).error?.issues[0]?.message ?? "no stable id comes of it")
      : `peers blank ${blanked} in cards`;
  return {
    path: [],
    message: `expected a deployment and an agent whose names make an id that peers accept, got ${name}: ${why} (docs/wire.md, agent id)`,
  };
}
