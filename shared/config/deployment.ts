import * as z from "zod";
import { choosingConfig } from "./choosing.ts";
import {
  credentialsCheck,
  DEPLOYMENT_NAME_FORM,
  deploymentNameCheck,
  runtimeIdCheck,
  serverUrlChecks,
  slugCheck,
} from "./forms.ts";
import { outboundConfig } from "./outbound.ts";
import { agentPolicy } from "./policy.ts";
import { remotes } from "./remotes.ts";

/**
 * What a deployment is, as data. `agents.yaml` is read into it at synth (agents-yaml.ts), the bundles carry it as the
 * module `sluice:deployment`, and each function parses it again when it first asks for it (bundled.ts).
 */

const runtimeId = z.string().check(runtimeIdCheck());
const slug = z.string().check(slugCheck());

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
  /** For an agent that is a remote one (docs/remotes.md): that one's name among `remotes`. */
  remote: z.string().min(1).optional(),
  policy: agentPolicy,
  /** As the operator wrote them: checked at synth by the agent's own schema, which the worker applies again. */
  settings: z.unknown(),
});
/** An agent that this deployment runs. */
export type HostedAgent = z.infer<typeof hostedAgent>;

export const credentials = z.string().check(credentialsCheck());
export const serverUrl = z.string().check(...serverUrlChecks());

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
  choosing: choosingConfig
    .optional()
    .describe("Who gets what agents hand on without saying to whom: [choosing.md](choosing.md)."),
};

export const deploymentName = z
  .string(DEPLOYMENT_NAME_FORM)
  .check(deploymentNameCheck())
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
