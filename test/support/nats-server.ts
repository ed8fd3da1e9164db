import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A nats-server of a test's own, with JetStream in a folder of its own. */
export interface TestNats {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now, or ran last. */
  readonly pid: number | undefined;
  /** Kills the process; the data stays for {@link restart}. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts the server again on the same port and data, after killing it if it still runs. */
  restart(): Promise<void>;
  /** Stops the server for good and removes its data. */
  stop(): Promise<void>;
}

const START_MS = 10_000;
const repository = new URL("../..", import.meta.url).pathname;

/**
 * Starts a nats-server with JetStream on a free port of the loopback interface.
 *
 * @param args further arguments of nats-server
 * @param command what becomes nats-server, such as `env`
 */
export async function startNats(
  args: readonly string[] = [],
  command: readonly string[] = [],
): Promise<TestNats> {
  const binary = await findNatsServer();
  const dir = await mkdtemp(join(tmpdir(), "sluice-nats-"));
  let process = await launch(binary, dir, -1, args, command);
  const port = await portOf(process, dir);
  await ready(process, port);
  const kill = async (signal: NodeJS.Signals = "SIGKILL") => {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, "exit");
    process.kill(signal);
    await exited;
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return process.pid;
    },
    kill,
    async restart() {
      await kill();
      process = await launch(binary, dir, port, args, command);
      await ready(process, port);
    },
    async stop() {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The nats-server binary: `NATS_SERVER_BIN`, then on PATH, then in the repository's cache. */
export async function findNatsServer(): Promise<string> {
  const onPath = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, "nats-server"));
  const candidates = [process.env.NATS_SERVER_BIN ?? "", ...onPath, join(repository, ".cache/nats-server")];
  for (const candidate of candidates) if (candidate !== "" && (await exists(candidate))) return candidate;
  throw new Error(`no nats-server: expected it at NATS_SERVER_BIN, on PATH or in .cache/nats-server`);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function launch(
  binary: string,
  dir: string,
  port: number,
  args: readonly string[],
  command: readonly string[],
): Promise<ChildProcess> {
  const own = ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", join(dir, "js"), "--ports_file_dir", dir];
  const [program = binary, ...rest] = [...command, binary, ...own, ...args];
  const child = spawn(program, rest, { stdio: "ignore" });
  await once(child, "spawn");
  return child;
}

/** The port that the server chose, out of the file that it writes for this. */
async function portOf(child: ChildProcess, dir: string): Promise<number> {
  for (const end = Date.now() + START_MS; Date.now() < end; await sleep(10)) {
    failIfGone(child);
    const name = (await readdir(dir)).find((file) => file.endsWith(".ports"));
    const url =
      name === undefined
        ? null
        : /(?:nats|tls):\/\/[^"]*:(\d+)/.exec(await readFile(join(dir, name), "utf8"));
    if (url !== null) return Number(url[1]);
  }
  throw new Error(`nats-server wrote no ports file within ${START_MS} ms`);
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  for (const end = Date.now() + START_MS; Date.now() < end; await sleep(10)) {
    failIfGone(child);
    if (await greets(port)) return;
  }
  throw new Error(`nats-server did not answer on port ${port} within ${START_MS} ms`);
}

function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const done = (value: boolean) => {
      socket.destroy();
      resolve(value);
    };
    socket.once("data", (data) => done(data.toString().startsWith("INFO")));
    socket.once("error", () => done(false));
    socket.once("close", () => done(false));
  });
}

function failIfGone(child: ChildProcess): void {
  if (child.exitCode === null && child.signalCode === null) return;
  throw new Error(`nats-server exited at its start (${child.exitCode ?? child.signalCode})`);
}
