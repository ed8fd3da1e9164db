import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const launcher = new URL("../../sluice", import.meta.url).pathname;

/** What a finished command left. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of stdout as JSON. */
  json(): unknown[];
}

/** A command that runs. */
export interface Running {
  readonly finished: Promise<Finished>;
  /** Calls back with what it writes to stdout, as it comes. */
  onOutput(listener: (text: string) => void): void;
  signal(name: NodeJS.Signals): void;
}

/** Starts `./sluice`, without a terminal. */
export function start(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; stdin?: string } = {},
): Running {
  const { NATS_URL: _, FORCE_COLOR: __, ...env } = process.env;
  const child = spawn(launcher, args, { cwd: options.cwd, env: { ...env, ...options.env } });
  child.stdin.end(options.stdin ?? "");
  const finished = (async () => {
    const [stdout, stderr] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close"),
    ]);
    const lines = stdout.split("\n").filter((line) => line !== "");
    return {
      code: child.exitCode,
      stdout,
      stderr,
      json: () => lines.map((line): unknown => JSON.parse(line)),
    };
  })();
  return {
    finished,
    onOutput: (listener) => void child.stdout.on("data", (chunk: Buffer) => listener(String(chunk))),
    signal: (name) => child.kill(name),
  };
}

/** Runs `./sluice` to its end. */
export function run(...args: Parameters<typeof start>): Promise<Finished> {
  return start(...args).finished;
}
