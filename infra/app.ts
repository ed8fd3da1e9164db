import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type App, Errors } from "aws-cdk-lib";
import type { BuildFailure } from "esbuild";
import * as z from "zod";
import { readAgentsYaml } from "../shared/config/agents-yaml.ts";
import { ConfigError } from "../shared/config/config-error.ts";
import { agentFiles, agentNotes, loadAgents } from "../shared/config/load-agents.ts";
import { readIfThere } from "../shared/config/named-files.ts";
import { bundleFunctions, ROOT } from "./bundle.ts";
import { checkedApp } from "./checked-app.ts";
import { CONTEXT, readContext } from "./context.ts";
import { letEsbuildGrow } from "./esbuild-memory.ts";
import { SluiceStack, stackName } from "./stack.ts";
import { forgetRecord, writeRecord } from "./synth-record.ts";

/**
 * The CDK app. Its context is told in context.ts; paths are relative to the repository.
 */
async function main(): Promise<void> {
  const app = checkedApp();
  await forgetRecord(app.outdir);
  const context = readContext(contextOf(app));
  const agentsDir = resolve(ROOT, context.agents ?? "agents");
  const agentsYaml = resolve(ROOT, context.config ?? "agents.yaml");
  const { stage, natsServers, natsCredentials } = context;
  const nats = {
    ...(natsServers !== undefined && { servers: natsServers }),
    ...(natsCredentials !== undefined && { credentials: natsCredentials }),
  };
  // The usual file may be missing; whoever names another means it.
  if (agentsYaml !== join(ROOT, "agents.yaml") && !existsSync(agentsYaml))
    throw new ConfigError(`context ${CONTEXT.config}: expected a file, there is none at ${agentsYaml}`);
  const read: string[] = [];
  const agents = await loadAgents(agentsDir);
  // Before agents.yaml is read, which may name one that is passed over.
  for (const note of agentNotes(agentsDir)) console.error(note);
  const { deployment, cloud, functions, notes } = readAgentsYaml(agentsYaml, agents, (path) => {
    read.push(path);
    return readIfThere(path);
  });

  for (const note of notes) console.error(note);

  const files = agentFiles(agentsDir);
  const outDir = await mkdtemp(join(tmpdir(), "sluice-bundles-"));
  try {
    const ownFunctions = functions.keys();
    const { inputs, ...bundles } = await bundleFunctions({
      deployment,
      agentFiles: files,
      ownFunctions,
      outDir,
      // Of synth.ts, which makes stacks for this machine and says so; what goes to the cloud is made anew.
      keepIn: process.env.CDK_VALIDATION === "false" ? process.env.SLUICE_BUNDLES : undefined,
    });
    const bridge = context.bridge ?? cloud.bridge;
    const staged = { ...cloud, bridge, ...(stage !== undefined && { stage }) };
    const name = stackName(deployment.deployment, staged.stage);
    new SluiceStack(app, name, { deployment, cloud: staged, functions, bundles, nats });
    app.synth();
    // Findings do not throw when the assembly is made for somebody else: they set the exit code. And what only the
    // command line knew is nothing that a later synthesis could compare with.
    if (
      process.exitCode !== undefined ||
      [stage, natsServers, natsCredentials].some((of) => of !== undefined)
    )
      return;
    const sources = { agentsDir, agentsYaml, agentFiles: files, inputs: [...inputs, ...read] };
    await writeRecord(app.outdir, { stackName: name, ...sources }, performance.timeOrigin);
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
}

function contextOf(app: App): Readonly<Record<string, unknown>> {
  return z.record(z.string(), z.unknown()).parse(app.node.getAllContext());
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && "errors" in error && "warnings" in error;
}

/** Such as a full disk: of Node's own, with the call that failed (Node.js: Errors, system errors). */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && "syscall" in error;
}

/** What the operator or an author wrote, or the disk, needs words, not a stack trace. */
function wordsFor(error: unknown): string | undefined {
  if (error instanceof ConfigError || Errors.isValidationError(error) || isBuildFailure(error))
    return error.message;
  return isSystemError(error) ? `the stack cannot be made: ${error.message}` : undefined;
}

letEsbuildGrow();
try {
  await main();
} catch (error) {
  const words = wordsFor(error);
  if (words === undefined) throw error;
  console.error(words);
  process.exitCode = 1;
}
