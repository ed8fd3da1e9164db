import { readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import * as z from "zod";
import { agentFiles } from "../shared/config/load-agents.ts";
import { ROOT } from "./bundle.ts";
import { areUnchanged, digestOf, digestsOf, readJson } from "./bundle-cache.ts";

/** Beside the template, what it was made of: as long as nothing of that changes it need not be made again. */
export const RECORD_FILE = "sluice-synth.json";

const record = z.object({
  /** The repository's: another checkout makes another stack of the same agents. */
  root: z.string(),
  stackName: z.string(),
  agentsDir: z.string(),
  agentsYaml: z.string(),
  agentFiles: z.array(z.string()),
  /** SHA-256 by path. */
  inputs: z.record(z.string(), z.string()),
});
export type SynthRecord = z.infer<typeof record>;

/** What a synthesis was made of. */
export interface SynthSources {
  readonly stackName: string;
  readonly agentsDir: string;
  readonly agentsYaml: string;
  readonly agentFiles: readonly string[];
  /** The files that went into the bundles or the configuration. */
  readonly inputs: readonly string[];
}

/**
 * Writes down what the assembly in `dir` was made of; not if some of that was changed while it was made, for then nobody can
 * say which text went in.
 *
 * @param since when making it began, in milliseconds since 1970
 */
export async function writeRecord(dir: string, sources: SynthSources, since: number): Promise<void> {
  const paths = [...sources.inputs, ...ownFiles()];
  const inputs = await digestsOf(paths);
  if (!(await areUnchanged(paths, since))) return;
  const written: SynthRecord = { root: ROOT, ...sources, agentFiles: [...sources.agentFiles], inputs };
  await writeFile(join(dir, RECORD_FILE), JSON.stringify(written));
}

/** Before the assembly in `dir` is made anew: half of it must not pass for the old whole. */
export async function forgetRecord(dir: string): Promise<void> {
  await rm(join(dir, RECORD_FILE), { force: true });
}

/** The record of the assembly in `dir`, if it was made for these and nothing has changed since. */
export async function currentRecord(
  dir: string,
  agentsDir: string,
  agentsYaml: string,
): Promise<SynthRecord | undefined> {
  const found = record.safeParse(await readJson(join(dir, RECORD_FILE)));
  if (!found.success) return undefined;
  const { data } = found;
  if (data.root !== ROOT || data.agentsDir !== agentsDir || data.agentsYaml !== agentsYaml) return undefined;
  if (agentFiles(agentsDir).join("\n") !== data.agentFiles.join("\n")) return undefined;
  for (const [path, known] of Object.entries(data.inputs))
    if ((await digestOf(path)) !== known) return undefined;
  return data;
}

/** What makes the template besides what is bundled: these folders' own files and the dependencies. */
function ownFiles(): string[] {
  const folders = ["infra", "infra/observability", "shared/config"].map((folder) => join(ROOT, folder));
  const sources = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name)),
  );
  return [...sources, resolve(ROOT, "package-lock.json")];
}
