import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ROOT } from "./bundle.ts";
import { CONTEXT, currentRecord } from "./synth-record.ts";

export interface SynthOptions {
  /** Folder of agents. Default: the repository's `agents`. */
  readonly agentsDir?: string;
  /** The operator's file. Default: the repository's `agents.yaml`. */
  readonly agentsYaml?: string;
  /** Where the cloud assembly goes. Default: the repository's `cdk.out`. */
  readonly outDir?: string;
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
  await mkdir(assemblyDir, { recursive: true });
  const current = () => currentRecord(assemblyDir, agentsDir, agentsYaml);
  let record = await current();
  if (record === undefined) {
    await runApp({ [CONTEXT.agents]: agentsDir, [CONTEXT.config]: agentsYaml }, assemblyDir);
    record = await current();
  }
  if (record === undefined)
    throw new SynthError(`${assemblyDir}: the sources changed while the stack was being synthesized`);
  const { stackName } = record;
  return { assemblyDir, templatePath: join(assemblyDir, `${stackName}.template.json`), stackName };
}

/** Runs the app the way the CDK command line does: output folder and context come by the environment. */
async function runApp(context: Readonly<Record<string, string>>, outDir: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "app.ts")], {
    cwd: ROOT,
    env: { ...process.env, CDK_OUTDIR: outDir, CDK_CONTEXT_JSON: JSON.stringify(context) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk));
  child.stderr.on("data", (chunk: Buffer) => (said += chunk));
  const code = await new Promise<number | null>((done, failed) => {
    child.once("error", failed);
    child.once("close", done);
  });
  if (code !== 0) throw new SynthError(said.trim() || `infra/app.ts ended with ${code}`);
}
