import { spawn } from "node:child_process";
import { type Dirent, existsSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { KEPT_BUNDLES, ROOT } from "./bundle.ts";
import { NOT_KEPT } from "./bundle-cache.ts";
import { CONTEXT } from "./context.ts";
import { currentRecord, forgetRecord, RECORD_FILE, type SynthRecord } from "./synth-record.ts";

export interface SynthOptions {
  /** Folder of agents. Default: the repository's `agents`. */
  readonly agentsDir?: string;
  /** The operator's file. Default: the repository's `agents.yaml`. */
  readonly agentsYaml?: string;
  /** Where the cloud assembly goes. Default: the repository's `cdk.out`. */
  readonly outDir?: string;
  /** Told, in a line, of what the stack was made in spite of. Default: it is written to stderr. */
  readonly tell?: (line: string) => void;
}

export interface Synthesis {
  /** The cloud assembly: templates and assets. */
  readonly assemblyDir: string;
  readonly templatePath: string;
  readonly stackName: string;
}

/** The stack could not be synthesized; the message is what the app said. */
export class SynthError extends Error {
  override readonly name = "SynthError";
}

/**
 * Synthesizes the stack as `cdk synth` does, in a process of its own so that changed agents are read afresh. An
 * assembly whose sources have not changed is used as it is.
 *
 * @throws SynthError with the app's own words, such as the line of `agents.yaml` that is not as expected
 * @throws ConfigError when there is no folder of agents
 */
export async function synthesize(options: SynthOptions = {}): Promise<Synthesis> {
  const agentsDir = resolve(options.agentsDir ?? join(ROOT, "agents"));
  const agentsYaml = resolve(options.agentsYaml ?? join(ROOT, "agents.yaml"));
  const assemblyDir = resolve(options.outDir ?? join(ROOT, "cdk.out"));
  const known = await currentRecord(assemblyDir, agentsDir, agentsYaml);
  const make = () => renew(assemblyDir, agentsDir, agentsYaml, options.tell ?? console.error);
  // Whoever changes an agent meanwhile means to go on from there.
  const made = known ?? (await make()) ?? (await make());
  if (made === undefined)
    throw new SynthError("the sources changed while the stack was being synthesized, twice");
  const { stackName } = made;
  return { assemblyDir, templatePath: join(assemblyDir, `${stackName}.template.json`), stackName };
}

/** Makes the assembly anew; nothing when the sources were changed meanwhile. */
async function renew(
  assemblyDir: string,
  agentsDir: string,
  agentsYaml: string,
  tell: (line: string) => void,
): Promise<SynthRecord | undefined> {
  const parent = dirname(assemblyDir);
  await mkdir(parent, { recursive: true });
  const scratch = await mkdtemp(join(parent, `.${basename(assemblyDir)}-`));
  const fresh = join(scratch, "assembly");
  // Whoever cannot wait ends this process: then nothing can be awaited any more.
  const remove = () => rmSync(scratch, { recursive: true, force: true });
  process.once("exit", remove);
  try {
    // Here containers are not run; the bridge is the same code in both of its forms.
    const context = { [CONTEXT.agents]: agentsDir, [CONTEXT.config]: agentsYaml, [CONTEXT.bridge]: "lambda" };
    const said = await runApp(context, fresh, scratch);
    // Its other notes are of agents.yaml, which whoever runs the stack reads as well.
    for (const line of said.split("\n")) if (line.startsWith(NOT_KEPT)) tell(line);
    const record = await currentRecord(fresh, agentsDir, agentsYaml);
    if (record !== undefined) await replace(assemblyDir, fresh);
    return record;
  } finally {
    process.off("exit", remove);
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Puts a fresh assembly in an old one's place. Old bundles stay, for functions may be running from them; two that do
 * this at once with the same sources do the same.
 */
async function replace(assemblyDir: string, fresh: string): Promise<void> {
  await mkdir(assemblyDir, { recursive: true });
  await forgetRecord(assemblyDir);
  const entries = await readdir(fresh, { withFileTypes: true });
  const isRecord = (entry: Dirent) => entry.name === RECORD_FILE;
  for (const entry of [...entries.filter((of) => !isRecord(of)), ...entries.filter(isRecord)]) {
    const target = join(assemblyDir, entry.name);
    // Folders are bundles, named by their content: one that is there is the same.
    if (entry.isDirectory() && existsSync(target)) continue;
    await rename(join(fresh, entry.name), target).catch((error: unknown) => {
      if (!entry.isDirectory() || !existsSync(target)) throw error;
    });
  }
}

/**
 * Runs the app the way the CDK command line does: output folder and context come by the environment. Only the check
 * against CloudFormation's schemas is left to `cdk synth`: it takes longer than all else, and nothing that an operator
 * or an author writes changes what it looks at.
 *
 * @returns what it said
 */
async function runApp(
  context: Readonly<Record<string, string>>,
  outDir: string,
  scratch: string,
): Promise<string> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "app.ts")], {
    cwd: ROOT,
    env: {
      ...process.env,
      CDK_OUTDIR: outDir,
      TMPDIR: scratch,
      CDK_CONTEXT_JSON: JSON.stringify(context),
      CDK_VALIDATION: "false",
      SLUICE_BUNDLES: process.env.SLUICE_BUNDLES ?? KEPT_BUNDLES,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.prependOnceListener("exit", kill); // before its folder is removed
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk));
  child.stderr.on("data", (chunk: Buffer) => (said += chunk));
  const code = await new Promise<number | null>((done, failed) => {
    child.once("error", failed);
    child.once("close", done);
  }).finally(() => process.off("exit", kill));
  if (code !== 0) throw new SynthError(said.trim() || `infra/app.ts ended with ${code}`);
  return said;
}
