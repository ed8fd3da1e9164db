import { setTimeout as wait } from "node:timers/promises";
import { type Battlefield, signal } from "./battlefield.ts";

type Name = "dynamodb" | "nats" | "host";

/** The servers as an adversary and their operator see them: killed by the one, started again by the other. */
export class Servers {
  readonly #field: Battlefield;
  /** Those that are being started again: nothing else is done to them meanwhile. */
  readonly #down = new Set<Name>();

  constructor(field: Battlefield) {
    this.#field = field;
  }

  /** Of the process that runs the server now; none while it is down. */
  pidOf(name: Name): number | undefined {
    const { host, nats } = this.#field;
    if (this.#down.has(name)) return undefined;
    if (name === "nats") return nats.pid;
    return name === "host" ? host.ready && host.pid : host.pidOfServer(name);
  }

  /** `kill -9`; it is started again after so many milliseconds. */
  async kill(name: Name, downMs: number): Promise<void> {
    const { toll, host, nats, startHost } = this.#field;
    const pid = this.pidOf(name);
    if (pid === undefined) return toll.count("left out: nobody there");
    const up = toll.begin(name, "down");
    this.#down.add(name);
    try {
      if (name === "nats") {
        await nats.kill("SIGKILL");
        toll.killed(name, pid);
        await wait(downMs);
        await nats.restart();
      } else if (name === "host") {
        for (const { name: functionName, pids } of host.functions())
          for (const gone of pids) toll.begin(gone, `${functionName} killed with the host`);
        await host.kill();
        toll.killed(name, pid);
        await wait(downMs);
        await startHost();
      } else if (signal(pid, "SIGKILL")) toll.killed(name, pid); // its host starts it again
    } finally {
      this.#down.delete(name);
      up();
    }
  }

  /** Whatever the play has left: everything runs. */
  async restore(): Promise<void> {
    const { host, startHost } = this.#field;
    if (host.ready === undefined) await startHost();
  }
}
