import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { HostError, messageOf } from "./errors.ts";

const run = promisify(execFile);

/** An archive of an official release. */
export interface Release {
  readonly url: string;
  /** SHA-256 of the archive, in hexadecimal. */
  readonly sha256: string;
}

/** The official release, by Node's name of the processor; its checksums are those of the official image's recipe. */
const VERSION = "2.10.29";
const RELEASES: Readonly<Record<string, Release | undefined>> = {
  x64: release("amd64", "e314da74a83a1d3876db8814c27eb990fe729640fd6452025b441bcede8390da"),
  arm64: release("arm64", "da4b27942ecfb4c5f0c54553d2e7f470ddda9d7581cfe8131b351a0e223ed401"),
};

/** The suites of Debian that have a recent one, the machine's own sources (which may be another distribution's) first. */
const SUITES = ["own", "trixie", "forky"];
const DEBIAN_SCRIPT = fileURLToPath(new URL("./debian-nats.sh", import.meta.url));
const CONNECT_WITHIN_MS = 5_000;
const DOWNLOAD_WITHIN_MS = 5 * 60_000;
const APT_WITHIN_MS = 3 * 60_000;

export interface Fetching {
  readonly progress: (message: string) => void;
  /** Whether a program that was put there will do. */
  readonly isGood: (path: string) => boolean;
  /** The official release; absent where none is known for this processor. */
  readonly release?: Release | undefined;
  readonly suites?: readonly string[];
}

/**
 * Puts a nats-server program at `path`: that of the official release, whose checksum is pinned, or else Debian's.
 *
 * @throws HostError `nats_not_found` with what was tried and what can be done
 */
export async function fetchNatsServer(path: string, fetching: Fetching): Promise<void> {
  const { progress, isGood, release = RELEASES[process.arch], suites = SUITES } = fetching;
  const tried: string[] = [];
  if (release !== undefined) {
    progress(`fetching nats-server: ${release.url}`);
    try {
      await fetchRelease(path, release, progress);
      if (isGood(path)) return;
      tried.push("the official release: it does not run here");
    } catch (error) {
      tried.push(`the official release: ${why(error)}`);
    }
  }
  for (const suite of suites) {
    progress(
      `fetching nats-server: Debian's package (${suite === "own" ? "this machine's sources" : suite})`,
    );
    try {
      await run(DEBIAN_SCRIPT, [path, suite], { timeout: APT_WITHIN_MS });
      if (isGood(path)) return;
      tried.push(`Debian's package, ${suite}: it is too old`);
    } catch (error) {
      tried.push(`Debian's package, ${suite}: ${why(error)}`);
    }
  }
  await rm(path, { force: true });
  throw new HostError(
    "nats_not_found",
    "no nats-server was found on PATH, and none could be fetched. Tried:\n" +
      tried.map((line) => `  - ${line}`).join("\n") +
      "\nInstall nats-server 2.10 or later (https://github.com/nats-io/nats-server/releases) and put it on PATH or name it " +
      "in NATS_SERVER_BIN; or use a server that runs already with --nats nats://HOST:PORT",
  );
}

async function fetchRelease(
  path: string,
  release: Release,
  progress: (message: string) => void,
): Promise<void> {
  const archive = await download(release.url, progress);
  const sha256 = createHash("sha256").update(archive).digest("hex");
  if (sha256 !== release.sha256)
    throw new Error(`its SHA-256 is ${sha256}, expected ${release.sha256}; nothing of it was run`);
  await mkdir(dirname(path), { recursive: true });
  const work = await mkdtemp(join(dirname(path), "fetch-")); // the same file system, for the rename
  try {
    await writeFile(join(work, "archive.tar.gz"), archive);
    await run("tar", ["-xzf", "archive.tar.gz", "--strip-components=1"], { cwd: work });
    await rename(join(work, "nats-server"), path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Gives up soon when there is no way to the server, and takes its time when there is. */
async function download(url: string, progress: (message: string) => void): Promise<Buffer> {
  const giveUp = new AbortController();
  const connecting = setTimeout(() => giveUp.abort(new Error("no answer in time")), CONNECT_WITHIN_MS);
  const signal = AbortSignal.any([giveUp.signal, AbortSignal.timeout(DOWNLOAD_WITHIN_MS)]);
  try {
    const response = await fetch(url, { signal });
    clearTimeout(connecting);
    if (!response.ok || response.body === null) throw new Error(`the server answers ${response.status}`);
    const total = Number(response.headers.get("content-length") ?? 0);
    const chunks: Uint8Array[] = [];
    let size = 0;
    let told = 0;
    for await (const chunk of response.body) {
      chunks.push(chunk);
      size += chunk.length;
      const percent = total > 0 ? Math.floor((10 * size) / total) * 10 : 0;
      if (percent > told) progress(`fetching nats-server: ${percent} %`);
      told = Math.max(told, percent);
    }
    return Buffer.concat(chunks);
  } finally {
    clearTimeout(connecting);
  }
}

function release(processor: string, sha256: string): Release {
  const name = `nats-server-v${VERSION}-linux-${processor}`;
  return {
    sha256,
    url: `https://github.com/nats-io/nats-server/releases/download/v${VERSION}/${name}.tar.gz`,
  };
}

/** What went wrong, on one line: a program's last words, or the cause of a failed fetch. */
function why(error: unknown): string {
  if (typeof error === "object" && error !== null && "stderr" in error && String(error.stderr).trim() !== "")
    return String(error.stderr).trim().split("\n").slice(-2).join(" ");
  return error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : messageOf(error);
}
