import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { credentials, deploymentName, serverUrl } from "../shared/config/deployment.ts";
import { CliError, EXIT } from "./errors.ts";

/** What the command needs to know of `agents.yaml`; its other fields are none of its business. */
const file = z.looseObject({
  deployment: deploymentName.default("local"),
  nats: z
    .looseObject({
      servers: z.array(serverUrl).min(1).optional(),
      credentials: credentials.default("none"),
      tls: z.looseObject({ ca: z.string().startsWith("file:").optional() }).optional(),
    })
    .prefault({}),
  agents: z.record(z.string(), z.unknown()).nullish(),
});

const runningHost = z.looseObject({ pid: z.int().positive(), nats: z.string() });

/** The deployment that the command belongs to, as its folder tells. */
export interface Home {
  readonly folder: string;
  /** First part of our agents' runtime ids. */
  readonly deployment: string;
  /** `agents.yaml`'s `nats`, as far as it is there. */
  readonly nats: { readonly servers?: readonly string[]; readonly credentials: string; readonly ca?: string };
  /** The short ids of our agents, sorted. */
  readonly agents: readonly string[];
  /** Where the local host that runs in this folder has its NATS server. */
  readonly hostNats?: string;
}

/**
 * Reads the deployment out of a folder: `agents.yaml`, the names of the files in `agents/`, `.sluice/host.json`.
 *
 * @throws CliError `usage` when `agents.yaml` is not as expected; a missing one is fine
 */
export function readHome(folder: string): Home {
  const path = join(folder, "agents.yaml");
  const parsed = file.safeParse(existsSync(path) ? parseYaml(path) : {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CliError(EXIT.usage, `${path}: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { deployment, nats, agents } = parsed.data;
  const hostNats = findHost(join(folder, ".sluice", "host.json"));
  return {
    folder,
    deployment,
    nats: {
      ...(nats.servers && { servers: nats.servers }),
      credentials: fromFolder(folder, nats.credentials),
      ...(nats.tls?.ca && { ca: fromFolder(folder, nats.tls.ca).slice("file:".length) }),
    },
    agents: [...new Set([...Object.keys(agents ?? {}), ...agentFiles(join(folder, "agents"))])].sort(),
    ...(hostNats !== undefined && { hostNats }),
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

function agentFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => name.slice(0, -".ts".length));
}

/** The NATS URL of a host that still lives; a file that a killed host left behind counts for nothing. */
function findHost(path: string): string | undefined {
  try {
    const { pid, nats } = runningHost.parse(JSON.parse(readFileSync(path, "utf8")));
    return isAlive(pid) ? nats : undefined;
  } catch {
    return undefined;
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
