import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Host, type HostEvent, type HostOptions, startHost } from "../../../infra/local/host.ts";
import { type TestStack, temporaryFolder, writeAssembly } from "./assembly.ts";

/** A host of a hand-written stack, stopped when the test ends, and what can be seen of it. */
export interface TestHost extends Host {
  readonly dataDir: string;
  /** What the functions wrote to the file `OUT`, one entry a line. */
  seen(): string[];
  readonly events: readonly HostEvent[];
}

/** How long the tests wait for what must happen; it is never asserted how long it took. */
const PATIENCE_MS = 60_000;

export async function startTestHost(
  t: TestContext,
  stack: TestStack,
  options: Partial<HostOptions> = {},
): Promise<TestHost> {
  const dataDir = options.dataDir ?? temporaryFolder("data");
  const out = join(dataDir, "seen.txt");
  const events: HostEvent[] = [];
  const host = await startHost({
    dataDir,
    assemblyDir: writeAssembly(stack),
    natsPort: 0,
    log: (event) => void events.push(event),
    ...options,
    env: { OUT: out, ...options.env },
  });
  t.after(() => host.stop());
  return { ...host, dataDir, events, seen: () => linesOf(out) };
}

export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
}

/** Waits until something holds, and gives what `look` returned then. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  holds: (value: T) => boolean = Boolean,
): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > deadline) throw new Error(`it never came to hold; last: ${JSON.stringify(value)}`);
    await sleep(20);
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that nobody waited for yet is over all the same.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** The processes that carry a host's mark, whoever is their parent. */
export function processesOf(dataDir: string): number[] {
  const mark = `SLUICE_LOCAL_HOST=${realpathSync(dataDir)}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(mark);
      } catch {
        return false;
      }
    })
    .map(Number);
}
