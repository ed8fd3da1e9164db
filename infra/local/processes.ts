import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Marks in its environment whatever a host started, its descendants included. */
const MARK = "SLUICE_LOCAL_HOST";
/** How long a process may take to leave after SIGTERM. */
const LEAVE_MS = 5_000;

/**
 * The processes of one host. Each is the leader of its own process group, so that Ctrl-C on a terminal reaches the
 * host alone, and that killing a child takes with it what the child has started.
 */
export class Processes {
  readonly #dataDir: string;
  readonly #leash = leash();
  readonly #running = new Set<ChildProcessWithoutNullStreams>();

  /** @param dataDir the host's data folder, by which its processes are known even to a later host */
  constructor(dataDir: string) {
    this.#dataDir = realpathSync(dataDir);
  }

  /** Starts a child. Its standard input stays open for as long as the host lives. */
  start(
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    cwd?: string,
  ): ChildProcessWithoutNullStreams {
    const [program = command, ...rest] = [...this.#leash, command, ...args];
    const child = spawn(program, rest, {
      cwd,
      env: { ...env, [MARK]: this.#dataDir },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin.on("error", () => {}); // a child that is gone needs no telling
    this.#running.add(child);
    child.once("exit", () => this.#running.delete(child));
    child.once("error", () => this.#running.delete(child));
    return child;
  }

  /** Kills every child without waiting for anything. */
  killAll(): void {
    for (const child of this.#running) killGroup(child.pid, "SIGKILL");
  }

  /**
   * Ends every process that carries this folder's mark: the children and what they have started, or what an earlier
   * host left behind when it was killed. Returns when none is left.
   *
   * @returns how many processes there were
   */
  async endAll(): Promise<number> {
    const found = this.#marked();
    for (const pid of found) send(pid, "SIGTERM");
    const deadline = Date.now() + LEAVE_MS;
    for (let left = found; left.length > 0; left = this.#marked()) {
      if (Date.now() > deadline) for (const pid of left) send(pid, "SIGKILL");
      await sleep(20);
    }
    return found.length;
  }

  /** Kills what children that are gone have left: what carries the mark and descends from no child that runs. */
  endOrphans(): void {
    const running = new Set(Array.from(this.#running, ({ pid }) => pid));
    for (const pid of this.#marked())
      if (!lineOf(pid).some((ancestor) => running.has(ancestor))) send(pid, "SIGKILL");
  }

  #marked(): number[] {
    if (!existsSync("/proc")) return []; // not Linux: DynamoDB's part will say so
    const mark = `${MARK}=${this.#dataDir}`;
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .filter((pid) => environmentOf(pid).includes(mark))
      .map(Number);
  }
}

/**
 * What to start a program with so that the kernel kills it when this process is killed (prctl(2), PR_SET_PDEATHSIG);
 * nothing where util-linux is not there, and then the next host on the folder ends what was left.
 */
function leash(): string[] {
  const command = ["setpriv", "--pdeathsig", "KILL"];
  const [program = "", ...args] = command;
  return spawnSync(program, [...args, "true"]).status === 0 ? command : [];
}

/** Sends a signal to a child and to what it has started; a child that is gone is no error. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid !== undefined) send(-pid, signal);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH: it has left already
  }
}

/** A process, its parent, and so on. */
function lineOf(pid: number): number[] {
  return pid === 0 ? [] : [pid, ...lineOf(parentOf(pid))];
}

/** 0 if there is none any more. */
function parentOf(pid: number): number {
  try {
    // proc(5), stat: pid (name) state parent …; a name may hold parentheses
    const [, parent] = /^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return Number(parent ?? 0);
  } catch {
    return 0;
  }
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return []; // another user's, or gone
  }
}
