import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { HostError, messageOf } from "./errors.ts";
import type { FileTrouble } from "./file-trouble.ts";
import { fetchNatsServer } from "./nats-fetch.ts";
import { freePort, requireFreePort } from "./ports.ts";
import type { Processes } from "./processes.ts";
import { Server } from "./server.ts";

/** The oldest server whose JetStream has what the streams and consumers need. */
export const MIN_VERSION = [2, 10] as const;

export interface NatsServer {
  readonly url: string;
  readonly server: Server;
}

/**
 * Finds a nats-server program: `NATS_SERVER_BIN`, then PATH, then the user's cache, else fetched into the cache.
 *
 * @param progress told what is being done, when it takes a while
 * @throws HostError `nats_not_found` saying what was tried
 */
export async function findNatsServer(
  progress: (message: string) => void = () => {},
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const named = env.NATS_SERVER_BIN;
  if (named) {
    const version = versionOf(named);
    if (isRecent(version)) return named;
    throw new HostError("nats_not_found", `NATS_SERVER_BIN=${named}: ${complaint(version)}`);
  }
  const cached = join(cacheFolder(env), "nats-server");
  const onPath = (env.PATH ?? "").split(delimiter).map((folder) => join(folder, "nats-server"));
  for (const candidate of [...onPath, cached])
    if (existsSync(candidate) && isRecent(versionOf(candidate))) return candidate;
  await fetchNatsServer(cached, { progress, isGood: (path) => isRecent(versionOf(path)) });
  return cached;
}

/**
 * Starts a nats-server with JetStream, its streams in the data folder, on this machine's loopback alone.
 *
 * @param port 0 for any
 * @throws HostError `port_taken`, `part_failed`
 */
export async function startNatsServer(
  binary: string,
  dataDir: string,
  port: number,
  processes: Processes,
  onTrouble: (message: string) => void,
  files: FileTrouble,
): Promise<NatsServer> {
  if (port !== 0)
    await requireFreePort(
      port,
      "NATS",
      `is it a NATS server that you want to use? then give --nats nats://127.0.0.1:${port}; ` +
        "else choose another port with --nats-port N (0 for any)",
    );
  const chosen = port === 0 ? await freePort() : port;
  const server = await Server.start(
    {
      name: "nats-server",
      command: binary,
      args: ["-a", "127.0.0.1", "-p", String(chosen), "-js", "-sd", join(dataDir, "nats")],
      logPath: join(dataDir, "logs", "nats-server.log"),
      ready: /Server is ready/,
      onTrouble,
      files,
    },
    processes,
  );
  return { url: `nats://127.0.0.1:${chosen}`, server };
}

/** The user's cache of what is fetched, outside the repository. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "sluice");
}

/** The version that a program says it is, such as `2.10.27`; an explanation when it says none. */
function versionOf(binary: string): { readonly numbers: readonly number[] } | { readonly trouble: string } {
  try {
    const said = execFileSync(binary, ["--version"], {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [, numbers] = /v?(\d+\.\d+\.\d+)/.exec(said) ?? [];
    return numbers
      ? { numbers: numbers.split(".").map(Number) }
      : { trouble: `it says "${said.split("\n", 1)[0]}"` };
  } catch (error) {
    return { trouble: messageOf(error) };
  }
}

function isRecent(version: ReturnType<typeof versionOf>): boolean {
  if ("trouble" in version) return false;
  const [major = 0, minor = 0] = version.numbers;
  return major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
}

function complaint(version: ReturnType<typeof versionOf>): string {
  const why = "trouble" in version ? version.trouble : `it is version ${version.numbers.join(".")}`;
  return `expected a nats-server of version ${MIN_VERSION.join(".")} or later; ${why}`;
}
