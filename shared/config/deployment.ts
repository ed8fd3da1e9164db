import * as z from "zod";
import { CREDENTIALS, DEPLOYMENT_NAME, RUNTIME_ID, RUNTIME_OR_ANYONE, SERVER_URL, SLUG } from "./forms.ts";
import { outboundConfig } from "./outbound.ts";
import { remotes } from "./remotes.ts";

/**
 * What a deployment is, as data. `agents.yaml` is read into it at synth (agents-yaml.ts), the bundles carry it as the
 * module `sluice:deployment`, and each function parses it again at cold start (bundled.ts).
 */

const runtimeId = z.string().check(RUNTIME_ID);
const slug = z.string().check(SLUG);
const runtimeOrAnyone = z.string().check(RUNTIME_OR_ANYONE);

/** A leap year: the longest that a task may live. */
export const MAX_TIMEOUT_SEC = 366 * 86_400;
/** More hops than this are a loop, whatever the operator says. */
export const MAX_DELEGATION_DEPTH = 12;
/** Lambda's default concurrency of an account, which no agent can exceed (AWS Lambda quotas). */
export const MAX_CONCURRENT = 1_000;
export const MAX_QUEUED = 1_000_000;
export const MAX_STATUS_EVERY_SEC = 3_600;

const seconds = z.int().min(1).max(MAX_TIMEOUT_SEC);
const timeoutSec = z
  .strictObject({
    default: seconds
      .optional()
      .describe("When the task does not say. Without it 300, or `max` if that is less."),
    max: seconds.default(86_400).describe("The most that a task may ask for."),
  })
  .transform((of) => ({ default: of.default ?? Math.min(300, of.max), max: of.max }))
  .refine((of) => of.default <= of.max, { error: "expected no more than max", path: ["default"] });

/** An agent of a peer that ours may delegate to. */
const delegateTarget = z.strictObject({
  runtimeAgentId: runtimeOrAnyone.describe("The agent's runtime, or all."),
  skillId: z
    .string()
    .regex(
      /^([A-Za-z0-9][A-Za-z0-9_-]{0,63}\/)?([A-Za-z0-9][A-Za-z0-9_-]{0,63}\*?|\*)$/,
      "expected a slug or ref/slug, optionally ending in *",
    )
    .default("task")
    .describe("The skill, of any address of the agent or of one; `task` is the same as `general_task`."),
});

/** The fields of a policy with the values that they have when the operator says nothing. */
export const policyFields = {
  acceptFromRuntimes: z
    .array(runtimeOrAnyone)
    .default([])
    .describe('Whose tasks are accepted: exact runtime ids, or `"*"` for everybody. Empty means nobody.'),
  acceptSkills: z
    .array(slug)
    .default([])
    .describe("Which skills may be asked for. Empty means all that the agent has."),
  timeoutSec: timeoutSec.prefault({}).describe("Seconds from acceptance to the deadline."),
  maxDelegationDepth: z
    .int()
    .min(0)
    .max(MAX_DELEGATION_DEPTH)
    .default(1)
    .describe("Ceiling for the depth of tasks received; what is handed on is one less."),
  maxConcurrent: z
    .int()
    .min(0)
    .max(MAX_CONCURRENT)
    .default(10)
    .describe(
      "Tasks of the agent worked on at once; 0 means unlimited. Further tasks wait: [tasks.md](tasks.md), slots. One that asks, sleeps or delegates for more than some seconds gives its slot up meanwhile. All agents together have at most as many as the function `work` has invocations ([below](#what-a-function-is-told)), but for those with a `function`.",
    ),
  maxQueued: z
    .int()
    .min(1)
    .max(MAX_QUEUED)
    .default(1_000)
    .describe("About this many tasks wait; more are rejected as `overloaded`. Without a limit none waits."),
  statusEverySec: z
    .number()
    .min(0)
    .max(MAX_STATUS_EVERY_SEC)
    .default(5)
    .describe("Progress texts are merged to one in this many seconds; 0 sends each."),
  discoverable: z.boolean().default(true).describe("Whether the agent has a card."),
  delegateTargets: z
    .array(delegateTarget)
    .default([])
    .describe(
      "To whom the agent may hand tasks on. The other agent must accept tasks from this one. Without a target, events for this agent are not read: let its delegations end before you take the last one out.",
    ),
  allowMemoryWrite: z
    .boolean()
    .default(false)
    .describe("Whether remote tasks may use tools that write memory."),
};

export const agentPolicy = z.strictObject(policyFields);
/** What the operator allows an agent; each field is explained in docs/configuration.md. */
export type AgentPolicy = z.infer<typeof agentPolicy>;

/** What cards say of a skill. */
const skillInfo = z.strictObject({
  slug,
  name: z.string().min(1),
  description: z.string(),
  tags: z.array(z.string()),
});

const hostedAgent = z.strictObject({
  /** The name of its file under `agents/`. */
  id: z.string().min(1),
  /** Its id on NATS: `<deployment>-<id>`. */
  runtime: runtimeId,
  /** The address that tasks for it carry; its id. */
  channelRef: slug,
  displayName: z.string().min(1).max(128),
  description: z.string(),
  version: z.string(),
  skills: z.array(skillInfo).min(1),
  policy: agentPolicy,
  /** As the operator wrote them: checked at synth by the agent's own schema, which the worker applies again. */
  settings: z.unknown(),
});
/** An agent that this deployment runs. */
export type HostedAgent = z.infer<typeof hostedAgent>;

export const credentials = z.string().check(CREDENTIALS);
export const serverUrl = z.string().check(...SERVER_URL);

/** What file and bundle say of NATS alike. */
export const natsFields = {
  servers: z
    .array(serverUrl)
    .min(1)
    .default(["nats://127.0.0.1:4222"])
    .describe(
      "Where NATS is. A user or a password in a URL is an error, for URLs are logged: they go into the file that `credentials` names.",
    ),
  credentials: credentials
    .default("none")
    .describe(
      "Who the functions are there: nobody, by a file of this machine, or by a secret in AWS Secrets Manager, its name or its ARN. What either may hold, and what the account must allow: [nats.md](nats.md).",
    ),
};

const natsConfig = z.strictObject({
  ...natsFields,
  /** The PEM text of the authority that signed the servers' certificates. */
  ca: z.string().includes("-----BEGIN CERTIFICATE-----", "expected PEM text").optional(),
});

const discovery = z.looseObject({
  discordGuildId: z
    .string()
    .regex(/^\d{17,20}$/, "expected 17 to 20 digits, in quotation marks")
    .optional()
    .describe(
      "The guild whose members list the agents: its id, as a text. Without it only who knows an agent asks it.",
    ),
});

/** What is said of others, in file and bundle alike. */
export const keptSections = {
  discovery: discovery.optional().describe("How others find the agents; further fields are kept."),
  remotes: remotes.optional().describe("A2A agents over HTTP: [remotes.md](remotes.md)."),
  outbound: outboundConfig
    .optional()
    .describe("What requests of ours may reach besides public addresses; without it nothing."),
};

export const deploymentName = z
  .string()
  .check(DEPLOYMENT_NAME)
  .describe(
    "First part of every runtime id: the agent `support` of `acme` is the runtime `acme-support` on NATS. Renaming a deployment gives its agents new addresses.",
  );

const deploymentConfig = z.strictObject({
  deployment: deploymentName,
  nats: natsConfig.prefault({}),
  agents: z.array(hostedAgent),
  ...keptSections,
});
/** A deployment as the functions know it. */
export type DeploymentConfig = z.infer<typeof deploymentConfig>;

/** As whom the `sluice` command asks a deployment's agents, unless it is told otherwise. */
export function commandRuntime(deployment: string): string {
  return `${deployment}-cli`;
}

/**
 * Reads a deployment; what is not said has its default.
 *
 * @throws Error that names each field that is not as expected
 */
export function parseDeployment(value: unknown): DeploymentConfig {
  const parsed = deploymentConfig.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(`the deployment's configuration: ${z.prettifyError(parsed.error)}`);
}
