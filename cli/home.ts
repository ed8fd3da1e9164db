import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as z from "zod";
import { commandConfig } from "../shared/config/command.ts";
import { ConfigError, findingsOf } from "../shared/config/config-error.ts";
import { credentials, deploymentName, serverUrl } from "../shared/config/deployment.ts";
import { agentFiles } from "../shared/config/load-agents.ts";
import type { AgentPolicy } from "../shared/config/policy.ts";
import { readYaml } from "../shared/config/yaml-source.ts";
import { CliError, EXIT } from "./errors.ts";
import { startCommand, USUAL_START } from "./start-again.ts";

/** Where NATS is when nobody says where, and where `npm start` serves it. */
export const USUAL_SERVER = "nats://127.0.0.1:4222";

/** What the command needs to know of `agents.yaml`; its other fields are none of its business. */
const file = z.looseObject({
  deployment: deploymentName.default("local"),
  nats: z
    .looseObject({
      servers: z.array(serverUrl).min(1).default([USUAL_SERVER]),
      credentials: credentials.default("none"),
      tls: z.looseObject({ ca: z.string().startsWith("file:").optional() }).optional(),
    })
    .prefault({}),
  agents: z.record(z.string(), z.unknown()).nullish(),
  command: commandConfig.nullish(),
});

const runningHost = z.looseObject({
  pid: z.int().positive(),
  /** URLs divided by commas. */
  nats: z.string().min(1),
  natsCredentials: credentials.default("none"),
  natsCa: z.string().optional(),
});

/** Where a local host keeps its tasks: the parts' endpoints, and what is in them. */
const localStack = z.object({
  pid: z.int().positive(),
  dynamodb: z.url(),
  s3: z.url(),
  sqs: z.url().optional(),
  lambda: z.url().optional(),
  table: z.string().min(1),
  bucket: z.string(),
  /** The stack's outputs. */
  outputs: z.record(z.string(), z.string()).default({}),
  dataDir: z.string().optional(),
  timeScale: z.number().min(1).default(1),
  /** Names of variables with credentials of remote agents that the host has; an older one does not tell. */
  credentialVariables: z.array(z.string()).optional(),
});
export type LocalStack = z.infer<typeof localStack>;

/** Where NATS is, and as whom to speak to it. */
export interface Where {
  readonly servers: readonly string[];
  /** `none`, `file:PATH` or `secret:NAME`. */
  readonly credentials: string;
  /** Path of a PEM file. */
  readonly ca?: string;
  /** The command that starts a local host, which would serve it, if that is not the usual one. */
  readonly start?: string;
}

/** The files that describe a deployment. */
const files = z.object({
  /** The path of `agents.yaml`. */
  config: z.string().min(1),
  /** The folder of the agents' files. */
  agentsDir: z.string().min(1),
});
type Files = z.infer<typeof files>;

/** The deployment that the command belongs to, as its files tell. */
export interface Home extends Files {
  /** First part of our agents' runtime ids. */
  readonly deployment: string;
  /** The short ids of our agents, sorted. */
  readonly agents: readonly string[];
  /** Whom the command may ask outside of the deployment without a person's word (docs/command.md). */
  readonly delegateTargets?: AgentPolicy["delegateTargets"];
  /** The command that starts a local host here, as it was last started, if that is not the usual one. */
  readonly start?: string;
  /** A local host was started here and runs no more: who answers at the usual place may be another's. */
  readonly isStopped?: true;
  /** The NATS of the local host that runs in this folder. */
  readonly host?: Where;
  /** The parts of that host. */
  readonly stack?: LocalStack;
  /** The NATS that `agents.yaml` names, or the usual one. */
  readonly operator: Where;
}

/**
 * The deployment of the local host that runs in a folder, as the files tell that the host was started with; where none
 * runs, or it does not tell, that of the folder.
 *
 * @param data where the host has its data, if not in `.sluice`
 * @param options.tolerant passes over an `agents.yaml` that is not as expected where a host runs, which tells what it is
 * @throws CliError as {@link readFolder}; `usage` when the host is of another deployment than the files;
 *   `unreachable` when no host runs on the data that was named
 */
export function readHome(folder: string, data?: string, { tolerant = false } = {}): Home {
  const dataDir = data ?? join(folder, ".sluice");
  const { files, ...host } = findHost(join(dataDir, "host.json"));
  const start = startCommand(dataDir);
  if (data !== undefined && host.host === undefined)
    throw new CliError(
      EXIT.unreachable,
      `no local host runs on the data folder ${data}: start it with \`${start}\``,
    );
  const { DeploymentName } = host.stack?.outputs ?? {};
  const isLenient = tolerant && host.host !== undefined;
  const home = readFiles(files ?? filesIn(folder), isLenient ? { deployment: DeploymentName } : undefined);
  const runs = DeploymentName ?? home.deployment;
  // A folder without agents.yaml is of no deployment, and contradicts none.
  if (runs === home.deployment || !existsSync(home.config))
    return {
      ...home,
      deployment: runs,
      ...(start !== USUAL_START && { start }),
      ...(host.host === undefined && wasStarted(dataDir) && { isStopped: true }),
      ...host,
    };
  throw new CliError(
    EXIT.usage,
    `the local host on ${dataDir} runs the deployment ${runs}, but ${home.config} is of ${home.deployment}: start it again, or call the command in the folder whose agents.yaml says deployment: ${runs}`,
  );
}

/**
 * The deployment of a folder, whatever host runs: `agents.yaml`, and the names of the files in `agents/`.
 *
 * @throws CliError `usage` when `agents.yaml` is not as expected; a missing one is fine
 */
export function readFolder(folder: string): Home {
  return readFiles(filesIn(folder));
}

function filesIn(folder: string): Files {
  return { config: join(folder, "agents.yaml"), agentsDir: join(folder, "agents") };
}

/** @param instead what to take in place of an `agents.yaml` that is not as expected */
function readFiles({ config, agentsDir }: Files, instead?: z.input<typeof file>): Home {
  const { deployment, nats, agents, command } = readConfig(config, instead);
  const folder = dirname(config);
  return {
    config,
    agentsDir,
    deployment,
    agents: [...new Set([...Object.keys(agents ?? {}), ...agentIds(agentsDir)])].sort(),
    ...(command && { delegateTargets: command.delegateTargets }),
    operator: {
      servers: nats.servers,
      credentials: fromFolder(folder, nats.credentials),
      ...(nats.tls?.ca && { ca: fromFolder(folder, nats.tls.ca).slice("file:".length) }),
    },
  };
}

/** The folder to look in: the current one if a deployment is there, otherwise the one that the command came with. */
export function findHome(cwd: string, own: string): string {
  return existsSync(join(cwd, "agents.yaml")) || existsSync(join(cwd, ".sluice")) ? cwd : own;
}

/** What is wrong with the file is said as `npm start` says it: file, line, field. */
function readConfig(path: string, instead?: z.input<typeof file>): z.output<typeof file> {
  if (!existsSync(path)) return file.parse({});
  try {
    const source = readYaml(path, readFileSync(path, "utf8"));
    const value = source.value ?? {};
    const parsed = file.safeParse(value);
    if (parsed.success) return parsed.data;
    throw source.error(findingsOf(parsed.error, value));
  } catch (cause) {
    if (instead !== undefined) return file.parse(instead);
    if (cause instanceof ConfigError)
      throw new CliError(EXIT.usage, cause.message.replaceAll("\n", "; "), { cause });
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(EXIT.usage, `${path}: cannot be read: ${reason}`, { cause });
  }
}

/** `file:PATH` with a path that holds from anywhere; anything else as it is. */
function fromFolder(folder: string, reference: string): string {
  if (!reference.startsWith("file:")) return reference;
  const path = reference.slice("file:".length);
  return `file:${path.startsWith("/") ? path : join(folder, path)}`;
}

function agentIds(folder: string): string[] {
  return existsSync(folder) ? agentFiles(folder).map((path) => basename(path, ".ts")) : [];
}

/** Whether a host has ever come up on a data folder: it leaves one of these there, however it ended. */
function wasStarted(dataDir: string): boolean {
  return ["start.json", "host.json"].some((name) => existsSync(join(dataDir, name)));
}

/** What is known of a host that still lives; a file that a killed host left behind counts for nothing. */
function findHost(path: string): Pick<Home, "host" | "stack"> & { readonly files?: Files } {
  try {
    const told: unknown = JSON.parse(readFileSync(path, "utf8"));
    const { pid, nats, natsCredentials, natsCa } = runningHost.parse(told);
    if (!isAlive(pid)) return {};
    const ca = natsCa !== undefined && { ca: natsCa };
    const stack = localStack.safeParse(told).data;
    // Agents' files are programs: those that another user names are not loaded.
    const isOurs = statSync(path).uid === process.getuid?.();
    const made = isOurs ? z.object({ files }).safeParse(told).data : undefined;
    return {
      host: { servers: nats.split(","), credentials: natsCredentials, ...ca },
      ...(stack !== undefined && { stack }),
      ...made,
    };
  } catch {
    return {};
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
