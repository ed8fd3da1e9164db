import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import type { Endpoints } from "../../../infra/local/host.ts";
import { inTime } from "../../support/until.ts";
import { fromHost, type Processes, type Ready, type StartOptions, type ToHost } from "./host-messages.ts";

/** How long a start or a stop may take while other programs want the processor, in milliseconds. */
const WITHIN_MS = 120_000;

export interface HostControl {
  readonly start: StartOptions;
  readonly route: (real: Endpoints) => Promise<Endpoints>;
  readonly onTrouble: (message: string) => void;
}

/** The local host in a process of its own: started, killed, started again on the same data. */
export class HostProcess {
  readonly #control: HostControl;
  #child: ChildProcess | undefined;
  #ready: Ready | undefined;
  #processes: Processes = { functions: [], servers: [] };

  constructor(control: HostControl) {
    this.#control = control;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Where the parts are: it changes with each start. */
  get ready(): Ready | undefined {
    return this.#ready;
  }

  /** The functions and the processes that run them, as of a moment ago. */
  functions(): Processes["functions"] {
    return this.#processes.functions;
  }

  pidOfServer(name: string): number | undefined {
    return this.#processes.servers.find((server) => server.name === name)?.pid;
  }

  /** @param env further environment of the functions, this time */
  async start(env: Readonly<Record<string, string>> = {}): Promise<Ready> {
    const { start, route, onTrouble } = this.#control;
    const main = join(import.meta.dirname, "host-main.ts");
    const bin = join(import.meta.dirname, "bin");
    const child = spawn("env", ["--ignore-signal=XFSZ", process.execPath, main], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` },
    });
    this.#child = child;
    const say = (message: ToHost) => {
      if (child.connected) child.send(message);
    };
    const ready = Promise.withResolvers<Ready>();
    child.once("exit", (code, signal) => {
      this.#processes = { functions: [], servers: [] };
      this.#ready = undefined;
      ready.reject(new Error(`the host ended (${signal ?? code}) before it was ready`));
    });
    ready.promise.catch(() => {}); // a host that ends later is somebody else's to notice
    child.on("message", async (message) => {
      const read = fromHost.parse(message);
      if (read.type === "route") say({ type: "routed", seen: await route(read.real) });
      if (read.type === "processes") this.#processes = read.processes;
      if (read.type === "trouble") onTrouble(read.message);
      if (read.type === "ready") ready.resolve(read.ready);
    });
    say({ type: "start", options: { ...start, env: { ...start.env, ...env } } });
    this.#ready = await inTime("the host is ready", ready.promise, WITHIN_MS);
    return this.#ready;
  }

  /** `kill -9`; its children go with it. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  /** Ends the host in good order. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    const message: ToHost = { type: "stop" };
    child.send(message);
    await inTime("the host's end", exited, WITHIN_MS);
  }
}
