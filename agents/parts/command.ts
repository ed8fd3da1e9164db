import { spawn, spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { FatalError } from "sluice";
import * as z from "zod";

/** How long a command may take unless its entry says otherwise; an invocation of `work` lasts 15 minutes. */
const DEFAULT_TIMEOUT_SEC = 60;
const MAX_TIMEOUT_SEC = 840;
/** How much of each of stdout and stderr is kept: this many bytes of its head, and as many of its tail. */
export const KEPT_BYTES = 16_384;
export const MAX_ARGS = 64;
export const MAX_ARG_LENGTH = 4_096;
/** How long output may still come once a command has ended; only a process that left its group holds it open. */
const LINGER_MS = 1_000;
/** Set by a local host, which ends whatever carries it (docs/local-host.md). */
const HOST_MARK = "SLUICE_LOCAL_HOST";
/**
 * Starts a command that the kernel kills when the worker ends, however it ends (prctl(2), PR_SET_PDEATHSIG): the next
 * worker starts the command anew, and two must not run at once. It is util-linux's; in Lambda a sandbox ends as a whole.
 */
const LEASH = ["setpriv", "--pdeathsig", "KILL", "--"] as const;
const LEASH_FAILED = /^setpriv: failed to execute .*: (.*)/;

const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "expected 1 to 64 of A-Z, a-z, 0-9, _, . and -");
/** The operating system ends an argument at a NUL. */
const argument = z.string().regex(/^[^\0]*$/, "expected no NUL");
const argv = z.array(argument.min(1)).min(1);
const entry = z.union([
  argv.transform((argv) => ({ argv, args: false, timeoutSec: DEFAULT_TIMEOUT_SEC })),
  z.strictObject({
    argv,
    /** Whether a task may add arguments of its own. */
    args: z.boolean().default(false),
    timeoutSec: z.number().positive().max(MAX_TIMEOUT_SEC).default(DEFAULT_TIMEOUT_SEC),
  }),
]);

/** The commands that an operator allows, by name: `{ disk: [df, -h], ping: { argv: [ping, -c, "1"], args: true } }`. */
export const allowed = z.record(name, entry).default({});

/** Arguments that a task adds. */
export const addedArgs = z.array(argument.max(MAX_ARG_LENGTH)).max(MAX_ARGS).default([]);

/** What is run: never a shell. */
export interface Command {
  readonly argv: readonly string[];
  readonly timeoutMs: number;
}

type Environment = Readonly<Record<string, string>>;

/**
 * The command of a name, with the arguments that a task adds.
 *
 * @param setting the setting that lists them, for the error's words
 * @throws FatalError when there is none of this name, or it takes no arguments
 */
export function resolve(
  setting: string,
  commands: z.output<typeof allowed>,
  { name, args }: { name: string; args: readonly string[] },
): Command {
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (found === undefined) {
    const known =
      Object.keys(commands).join(", ") || `none (see \`${setting}\` of this agent in agents.yaml)`;
    throw new FatalError(`${JSON.stringify(name)} is not allowed; allowed: ${known}`);
  }
  if (args.length > 0 && !found.args) throw new FatalError(`${name} takes no arguments from a task`);
  return { argv: [...found.argv, ...args], timeoutMs: found.timeoutSec * 1_000 };
}

/** Keeps the head and the tail of what is written to it, and counts the rest. */
export class HeadAndTail {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #total = 0;
  readonly #kept: number;

  constructor(kept: number) {
    this.#kept = kept;
  }

  write(chunk: Buffer): void {
    this.#total += chunk.length;
    const toHead = chunk.subarray(0, this.#kept - this.#head.length);
    this.#head = Buffer.concat([this.#head, toHead]);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(toHead.length)]);
    this.#tail = this.#tail.subarray(Math.max(0, this.#tail.length - this.#kept));
  }

  /** The text with a note where something is missing; how many bytes there were, and how many are cut. */
  read(): { text: string; bytes: number; cut: number } {
    if (this.#total <= 2 * this.#kept)
      return { text: Buffer.concat([this.#head, this.#tail]).toString("utf8"), bytes: this.#total, cut: 0 };
    const head = this.#head.subarray(0, wholeUntil(this.#head));
    const tail = this.#tail.subarray(wholeFrom(this.#tail));
    const cut = this.#total - head.length - tail.length;
    const text = `${head.toString("utf8")}\n[… ${cut} bytes cut …]\n${tail.toString("utf8")}`;
    return { text, bytes: this.#total, cut };
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** Where the tail's first whole code point starts: a code point has at most three continuation bytes (RFC 3629). */
function wholeFrom(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && isContinuation(bytes[at])) at++;
  return at;
}

/** Where the head's last whole code point ends. */
function wholeUntil(bytes: Buffer): number {
  let lead = bytes.length - 1;
  while (lead > bytes.length - 4 && isContinuation(bytes[lead])) lead--;
  const first = bytes[lead] ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return lead + length > bytes.length ? lead : bytes.length;
}

/** How a command ended; `exitCode` is null when a signal ended it. */
export interface Ran {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  durationMs: number;
  stdout: { text: string; bytes: number; cut: number };
  stderr: { text: string; bytes: number; cut: number };
}

let known: readonly string[] | undefined;

/** The leash, or nothing where there is none. */
function leash(): readonly string[] {
  const [program, ...args] = LEASH;
  known ??= spawnSync(program, [...args, "true"]).status === 0 ? LEASH : [];
  return known;
}

/**
 * Runs a command in a process group of its own and waits for its end. The whole group is killed when the time is up
 * and when `signal` fires; the command does not outlive this process.
 *
 * @param extra variables of the command's environment beside `PATH`, `HOME` and `LANG`
 * @throws FatalError when the command cannot be started; the signal's reason when it fires
 */
export async function run(command: Command, signal: AbortSignal, extra: Environment = {}): Promise<Ran> {
  signal.throwIfAborted();
  const { argv, timeoutMs } = command;
  const [file = "", ...args] = argv;
  const started = performance.now();
  // Nothing of our own environment but the search path: it holds credentials.
  const PATH = process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin";
  const mark = process.env[HOST_MARK];
  const env = {
    PATH,
    HOME: tmpdir(),
    LANG: "C.UTF-8",
    ...extra,
    ...(mark !== undefined && { [HOST_MARK]: mark }),
  };
  const [program = file, ...rest] = [...leash(), file, ...args];
  const child = spawn(program, rest, {
    cwd: tmpdir(),
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stdout = new HeadAndTail(KEPT_BYTES);
  const stderr = new HeadAndTail(KEPT_BYTES);
  child.stdout.on("data", (chunk: Buffer) => stdout.write(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.write(chunk));

  const killGroup = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group is gone already.
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, timeoutMs);
  signal.addEventListener("abort", killGroup);
  let linger: NodeJS.Timeout | undefined;
  try {
    const [exitCode, endSignal] = await new Promise<[number | null, string | null]>((done, failed) => {
      child.once("error", (error) => failed(new FatalError(`cannot run ${file}: ${error.message}`)));
      child.once("exit", () => {
        killGroup();
        linger = setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, LINGER_MS);
      });
      child.once("close", (code, name) => done([code, name]));
    });
    signal.throwIfAborted();
    const [, whyNot] = LEASH_FAILED.exec(stderr.read().text) ?? [];
    if (whyNot !== undefined && (exitCode === 126 || exitCode === 127))
      throw new FatalError(`cannot run ${file}: ${whyNot}`);
    const durationMs = Math.round(performance.now() - started);
    return {
      exitCode,
      signal: endSignal,
      timedOut,
      durationMs,
      stdout: stdout.read(),
      stderr: stderr.read(),
    };
  } finally {
    clearTimeout(timer);
    clearTimeout(linger);
    signal.removeEventListener("abort", killGroup);
  }
}

/** How a command ended, in a few words. */
export function endOf(ran: Ran): string {
  if (ran.timedOut) return `stopped after ${ran.durationMs} ms: its time was up`;
  return ran.exitCode === null ? `ended by ${ran.signal}` : `exit code ${ran.exitCode}`;
}

/** What a command wrote: stdout, then stderr, without blank ends. */
export function outputOf(ran: Ran): string {
  const outputs = [ran.stdout.text, ran.stderr.text].map((text) => text.trimEnd());
  return outputs.filter((text) => text !== "").join("\n");
}

/** How a command ended and what it wrote, as data for the requester. */
export function dataOf({ stdout, stderr, ...end }: Ran) {
  const cut = { stdout: stdout.cut, stderr: stderr.cut };
  return { ...end, stdout: stdout.text, stderr: stderr.text, cut };
}
