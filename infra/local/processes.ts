import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
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
  readonly #mark: string;
  readonly #running = new Set<ChildProcessWithoutNullStreams>();

  /** @param dataDir the host's data folder, by which its processes are known even to a later host */
  constructor(dataDir: string) {
    this.#mark = `${MARK}=${realpathSync(dataDir)}`;
  }

  /** Starts a child. Its standard input stays open for as long as the host lives. */
  start(
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    cwd?: string,
  ): ChildProcessWithoutNullStreams {
    const [name = MARK, value] = this.#mark.split(/=(.*)/s);
    const child = spawn(command, args, {
      cwd,
      env: { ...env, [name]: value },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin.on("error", () => {}); // a child that is gone needs no telling
    this.#running.add(child);
    child.once("exit", () => this.#running.delete(child));
    child.once("error", () => this.#running.delete(child));
    return child;
  }

  /** Ends every child that still runs, and returns when none is left. */
  async stopAll(): Promise<void> {
    await endAll(
      [...this.#running].flatMap((child) => child.pid ?? []),
      (pids) => pids.filter((pid) => [...this.#running].some((child) => child.pid === pid)),
    );
    await this.reap();
  }

  /** Kills every child without waiting for anything. */
  killAll(): void {
    for (const child of this.#running) killGroup(child.pid, "SIGKILL");
  }

  /**
   * Ends what an earlier host on the same data folder left behind when it was killed, and what its children left.
   *
   * @returns how many processes there were
   */
  async reap(): Promise<number> {
    const survivors = this.#marked();
    await endAll(survivors, () => this.#marked());
    return survivors.length;
  }

  #marked(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .filter((pid) => environmentOf(pid).includes(this.#mark))
      .map(Number);
  }
}

/** Sends a signal to a child and to what it has started; a child that is gone is no error. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: it has left already
  }
}

async function endAll(
  pids: readonly number[],
  left: (pids: readonly number[]) => readonly number[],
): Promise<void> {
  for (const pid of pids) signalOne(pid, "SIGTERM");
  const deadline = Date.now() + LEAVE_MS;
  let rest = left(pids);
  while (rest.length > 0) {
    if (Date.now() > deadline) for (const pid of rest) signalOne(pid, "SIGKILL");
    await sleep(20);
    rest = left(rest);
  }
}

function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH: it has left already
  }
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return []; // another user's, or gone
  }
}
