import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import * as z from "zod";
import { cacheFolder } from "../../infra/local/nats-server.ts";

/** The package and its lock: the version, and with checksums all that belongs to it. */
const PINNED = join(import.meta.dirname, "ric");
const FILES = ["package.json", "package-lock.json"] as const;
const INSTALL_WITHIN_MS = 20 * 60_000;

/**
 * What its installation needs: it compiles curl, AWS's C++ runtime and itself (aws-lambda-ric, scripts/preinstall.sh
 * and scripts/postinstall.sh). By program the package of Debian that has it.
 */
const TOOLS: Readonly<Record<string, string>> = {
  cmake: "cmake",
  "g++": "g++",
  make: "make",
  python3: "python3",
  tar: "tar",
  xz: "xz-utils",
};

const pinned = z.object({ dependencies: z.object({ "aws-lambda-ric": z.string() }) });

/** Outside the dependencies, and apart for each version of it and of Node's binary interface. */
function folder(): string {
  const { dependencies } = pinned.parse(JSON.parse(readFileSync(join(PINNED, "package.json"), "utf8")));
  const name = `aws-lambda-ric-${dependencies["aws-lambda-ric"]}-node-${process.versions.modules}-${process.arch}`;
  return join(cacheFolder(process.env), name);
}

/** The file by which AWS's runtime interface client is started; undefined if it is not installed. */
export function ricMain(): string | undefined {
  const home = join(folder(), "node_modules", "aws-lambda-ric");
  return existsSync(join(home, "rapid-client.node")) ? join(home, "index.mjs") : undefined;
}

/** What is missing to install it: packages of Debian. */
export function missingPackages(): string[] {
  return Object.entries(TOOLS)
    .filter(([program]) => !isOnPath(program))
    .map(([, name]) => name);
}

/**
 * Installs the runtime interface client, unless it is there. It takes some minutes, for it compiles.
 *
 * @throws Error when it could not be installed; its folder is then as it was
 */
export async function installRic(): Promise<void> {
  if (ricMain() !== undefined) return;
  const target = folder();
  mkdirSync(dirname(target), { recursive: true });
  const scratch = mkdtempSync(`${target}-`);
  try {
    for (const file of FILES) copyFileSync(join(PINNED, file), join(scratch, file));
    await npmCi(scratch);
    rmSync(target, { recursive: true, force: true });
    renameSync(scratch, target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (ricMain() === undefined)
    throw new Error("aws-lambda-ric: npm has installed it without its native part");
}

/** With this Node, and its headers where it brings them along: else node-gyp fetches them from Node's own site. */
async function npmCi(cwd: string): Promise<void> {
  const home = dirname(dirname(realpathSync(process.execPath)));
  const npm = spawn("npm", ["ci", "--no-audit", "--no-fund", "--foreground-scripts"], {
    cwd,
    stdio: ["ignore", 2, 2],
    timeout: INSTALL_WITHIN_MS,
    env: {
      ...process.env,
      PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      ...(existsSync(join(home, "include", "node", "node_api.h")) && { npm_config_nodedir: home }),
    },
  });
  const [code] = await once(npm, "exit");
  if (code !== 0) throw new Error(`aws-lambda-ric could not be installed: npm ci ended with ${code}`);
}

function isOnPath(program: string): boolean {
  try {
    execFileSync("sh", ["-c", 'command -v "$1"', "sh", program], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
