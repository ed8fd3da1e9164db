import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { HostError, messageOf } from "./errors.ts";
import type { FileTrouble } from "./file-trouble.ts";
import { LogFile } from "./log-file.ts";
import { killGroup, type Processes } from "./processes.ts";

/** A server program that the host keeps running. */
export interface ServerSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly logPath: string;
  /** What of an output line says that the server takes requests. */
  readonly ready: RegExp;
  /** Told when the server ended by itself and was started again, or could not be. */
  readonly onTrouble: (message: string) => void;
  readonly files: FileTrouble;
}

/** How often in a row a server may end without having been ready. */
const MAX_FAILED_STARTS = 5;
const READY_WITHIN_MS = 30_000;

/** A server program: started, kept running as a service manager would, stopped. */
export class Server {
  readonly #spec: ServerSpec;
  readonly #processes: Processes;
  readonly #log: LogFile;
  #pid: number | undefined;
  #stopping = false;
  #ended: Promise<void> = Promise.resolve();

  /** @throws HostError `part_failed` with the server's last words when it does not become ready */
  static async start(spec: ServerSpec, processes: Processes): Promise<Server> {
    const server = new Server(spec, processes);
    try {
      await server.#run();
    } catch (error) {
      server.#stopping = true;
      killGroup(server.#pid, "SIGKILL");
      throw error;
    }
    return server;
  }

  private constructor(spec: ServerSpec, processes: Processes) {
    this.#spec = spec;
    this.#processes = processes;
    this.#log = new LogFile(spec.logPath);
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** Asks the server to leave, and returns when it has. */
  async stop(): Promise<void> {
    this.#stopping = true;
    killGroup(this.#pid, "SIGTERM");
    const timer = setTimeout(() => killGroup(this.#pid, "SIGKILL"), 5_000);
    await this.#ended;
    clearTimeout(timer);
    this.#log.close();
  }

  #run(): Promise<void> {
    const { name, command, args, ready, logPath, files } = this.#spec;
    const child = this.#processes.start(command, args, process.env);
    this.#pid = child.pid;
    let isReady = false;
    let lastLine = "it said nothing";
    const ended = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("close", (code, signal) =>
        resolve(`it ended (${signal ?? `exit code ${code}`}): ${lastLine}`),
      );
    });
    const becameReady = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on("line", (line) => {
          files.attempt(() => this.#log.write(line));
          lastLine = line;
          if (!isReady && ready.test(line)) {
            isReady = true;
            resolve();
          }
        });
    });
    this.#ended = ended.then((why) => {
      this.#pid = undefined;
      if (isReady && !this.#stopping) void this.#restart(why);
    });
    const failed = (why: string) =>
      new HostError("part_failed", `${name} did not start: ${why} (log: ${logPath})`);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(failed("it was not ready in time")), READY_WITHIN_MS);
      void becameReady.then(resolve);
      void ended.then((why) => reject(failed(why)));
      void Promise.race([becameReady, ended]).then(() => clearTimeout(timer));
    });
  }

  async #restart(why: string): Promise<void> {
    this.#spec.onTrouble(`${this.#spec.name}: ${why}; starting it again`);
    for (let attempt = 0; attempt < MAX_FAILED_STARTS && !this.#stopping; attempt++) {
      await sleep(200 * 2 ** attempt);
      if (this.#stopping) return;
      try {
        return await this.#run();
      } catch (error) {
        this.#spec.onTrouble(messageOf(error));
      }
    }
    if (!this.#stopping) this.#spec.onTrouble(`${this.#spec.name}: given up; start the host anew`);
  }
}
