import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { credentials, deploymentName, serverUrl } from "../shared/config/deployment.ts";
import { agentFiles } from "../shared/config/load-agents.ts";
import { CliError, EXIT } from "./errors.ts";

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
  table: z.string().min(1),
  bucket: z.string(),
  /** The stack's outputs. */
  outputs: z.record(z.string(), z.string()).default({}),
  dataDir: z.string().optional(),
  timeScale: z.number().min(1).default(1),
});
export type LocalStack = z.infer<typeof localStack>;

/** Where NATS is, and as whom to speak to it. */
export interface Where {
  readonly servers: readonly string[];
  /** `none`, `file:PATH` or `secret:NAME`. */
  readonly credentials: string;
  /** Path of a PEM file. */
  readonly ca?: string;
}

/** The deployment that the command belongs to, as its folder tells. */
export interface Home {
  readonly folder: string;
  /** First part of our agents' runtime ids. */
  readonly deployment: string;
  /** The short ids of our agents, sorted. */
  readonly agents: readonly string[];
  /** The NATS of the local host that runs in this folder. */
  readonly host?: Where;
  /** The parts of that host. */
  readonly stack?: LocalStack;
  /** The NATS that `agents.yaml` names, or the usual one. */
  readonly operator: Where;
}

/**
 * Reads the deployment out of a folder: `agents.yaml`, the names of the files in `agents/`, `.sluice/host.json`.
 *
 * @param data where the host of this deployment has its data, if not there
 * @throws CliError `usage` when `agents.yaml` is not as expected; a missing one is fine. `unreachable` when no host runs
 *   on the data that was named
 */
export function readHome(folder: string, data?: string): Home {
  const path = join(folder, "agents.yaml");
  const parsed = file.safeParse(existsSync(path) ? parseYaml(path) : {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CliError(EXIT.usage, `${path}: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { deployment, nats, agents } = parsed.data;
  const host = findHost(join(data ?? join(folder, ".sluice"), "host.json"));
  if (data !== undefined && host.host === undefined)
    throw new CliError(
      EXIT.unreachable,
      `no local host runs on the data folder ${data}: start it with \`npm start -- --data ${data}\``,
    );
  return {
    folder,
    deployment,
    agents: [...new Set([...Object.keys(agents ?? {}), ...agentIds(join(folder, "agents"))])].sort(),
    ...host,
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

function parseYaml(path: string): unknown {
  try {
    return parse(readFileSync(path, "utf8")) ?? {};
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    throw new CliError(EXIT.usage, `${path}: cannot be read as YAML: ${reason}`, { cause });
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

/** What is known of a host that still lives; a file that a killed host left behind counts for nothing. */
function findHost(path: string): Pick<Home, "host" | "stack"> {
  try {
    const told: unknown = JSON.parse(readFileSync(path, "utf8"));
    const { pid, nats, natsCredentials, natsCa } = runningHost.parse(told);
    if (!isAlive(pid)) return {};
    const ca = natsCa !== undefined && { ca: natsCa };
    const stack = localStack.safeParse(told).data;
    return {
      host: { servers: nats.split(","), credentials: natsCredentials, ...ca },
      ...(stack !== undefined && { stack }),
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
