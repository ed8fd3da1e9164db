import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { ROOT } from "../../infra/bundle.ts";
import { inTime } from "./until.ts";

/** How long a command of a clone may take; a start synthesizes the stack. */
const COMMAND_WITHIN_MS = 180_000;

/** What a finished command left. */
export interface Finished {
  readonly code: number | null;
  /** Both streams as they came, without escape sequences. */
  readonly said: string;
}

/** A command line that runs, in a process group of its own, as a shell with job control starts it. */
export interface Typed {
  readonly finished: Promise<Finished>;
  said(): string;
  isRunning(): boolean;
  /** What the terminal does at Ctrl-C: a signal to the whole group. */
  ctrlC(): void;
}

/**
 * The repository as `git clone` and `npm ci` would leave it, work tree included, in a folder of its own; and the shell
 * of a user whose only Node is version 20.
 */
export class Clone implements Disposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-clone-")));
  readonly path = join(this.folder, "sluice-clone");
  readonly #env: NodeJS.ProcessEnv;

  constructor() {
    const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
      cwd: ROOT,
      encoding: "utf8",
    });
    for (const file of listed.split("\0")) {
      const from = join(ROOT, file);
      if (file === "" || !existsSync(from)) continue;
      mkdirSync(dirname(join(this.path, file)), { recursive: true });
      copyFileSync(from, join(this.path, file));
    }
    symlinkSync(join(ROOT, "node_modules"), join(this.path, "node_modules"));
    this.#env = userEnvironment((path) => this.#oldNode(path));
  }

  /** Writes a file of the clone. */
  write(file: string, text: string): void {
    writeFileSync(join(this.path, file), text);
  }

  /** Starts a command line in the clone, or in another folder. */
  type(line: string, cwd = this.path): Typed {
    const child = spawn("sh", ["-c", line], {
      cwd,
      env: this.#env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk: string) => (said += chunk));
    const text = () => stripVTControlCharacters(said);
    const closed = once(child, "close").then(() => ({ code: child.exitCode, said: text() }));
    return {
      finished: inTime(`the end of \`${line}\``, closed, COMMAND_WITHIN_MS).catch((error: Error) => {
        throw new Error(`${error.message}; it has said:\n${text()}`);
      }),
      said: text,
      isRunning: () => child.exitCode === null && child.signalCode === null,
      ctrlC: () => signalGroup(child, "SIGINT"),
    };
  }

  /** Runs a command line to its end. */
  run(line: string, cwd?: string): Promise<Finished> {
    return this.type(line, cwd).finished;
  }

  /** The processes that this clone has started, however far down: its folder is in their environment. */
  processes(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/environ`, "utf8").includes(this.folder);
        } catch {
          return false; // it is gone, or nobody's business
        }
      })
      .map(Number);
  }

  /** Ends whatever still runs, and removes the folder. */
  [Symbol.dispose](): void {
    for (const pid of this.processes())
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended meanwhile.
      }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  /** A folder with a `node` that can do what one of version 20 can, whatever is on PATH: run npm, but no TypeScript. */
  #oldNode(path: readonly string[]): string {
    const own = path.map((folder) => join(folder, "node")).find((file) => existsSync(file));
    const folder = join(this.folder, "node-20");
    mkdirSync(folder);
    const script = [
      "#!/bin/sh",
      'case "$*" in',
      "  --version | -v) echo v20.19.0; exit ;;",
      "  *.ts | *.ts\\ *) echo 'Unknown file extension \".ts\"' >&2; exit 1 ;;",
      "esac",
      `exec '${own ?? process.execPath}' "$@"`,
      "",
    ];
    writeFileSync(join(folder, "node"), script.join("\n"), { mode: 0o755 });
    return folder;
  }
}

/** The environment of a user's shell: without what `npm test` and the test runner put there. */
function userEnvironment(nodeFolder: (path: readonly string[]) => string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_|NODE_TEST|NODE_OPTIONS$|NODE_COMPILE_CACHE$|NATS_URL$|NO_COLOR$|FORCE_COLOR$|INIT_CWD$)/.test(
        name,
      ),
  );
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  return { ...Object.fromEntries(kept), PATH: [nodeFolder(path), ...path].join(delimiter) };
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined) process.kill(-child.pid, signal);
}
