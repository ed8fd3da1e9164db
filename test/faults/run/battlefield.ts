import { execFileSync } from "node:child_process";
import type { TestNats } from "../../support/nats-server.ts";
import type { Proxies } from "../../support/proxy/proxies.ts";
import type { Chance } from "./chance.ts";
import type { HostProcess } from "./host.ts";
import type { Toll } from "./toll.ts";

/** What an adversary can lay hands on. */
export interface Battlefield {
  readonly host: HostProcess;
  readonly nats: TestNats;
  readonly proxies: Proxies;
  readonly chance: Chance;
  readonly toll: Toll;
  /** Starts a host on the data that the last one left, under clocks of its own. */
  readonly startHost: () => Promise<void>;
  /** Publishes some tasks once more under other ids of their messages. */
  readonly repeat: (count: number) => Promise<number>;
  /** Gives a delivered message back to JetStream, whoever has it. */
  readonly giveBack: (ackSubject: string) => void;
}

/** Sends a signal. False when there is no such process any more. */
export function signal(pid: number | undefined, name: NodeJS.Signals): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false; // ESRCH
  }
}

/** Bounds the size of a process's files, as a full disk does (setrlimit(2), RLIMIT_FSIZE), or no longer. */
export function boundFiles(pid: number, bound: "1" | "unlimited"): boolean {
  try {
    execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bound}:unlimited`], { stdio: "ignore" });
    return true;
  } catch {
    return false; // it is gone
  }
}
