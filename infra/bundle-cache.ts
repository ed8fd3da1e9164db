import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";

const kept = z.object({
  /** SHA-256 of each file that went in, by path. */
  inputs: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.string()),
});

/** A bundle as it is made. */
export interface Made {
  /** Absolute paths of what it is made of. Packages are not among them, for package-lock.json is. */
  readonly inputs: readonly string[];
  /** The text of each of its files, by name. */
  readonly files: Readonly<Record<string, string>>;
}

/** The bundle that `file` keeps of an earlier call, if nothing that went in has changed; else a new one, which is kept. */
export async function keptOr(file: string, make: () => Promise<Made>): Promise<Made> {
  const found = kept.safeParse(await readJson(file));
  if (found.success && (await isCurrent(found.data.inputs)))
    return { inputs: Object.keys(found.data.inputs), files: found.data.files };
  const made = await make();
  const inputs: Record<string, string> = {};
  for (const path of made.inputs) inputs[path] = await digestOf(path);
  await mkdir(dirname(file), { recursive: true });
  // Another process that looks meanwhile finds the old one or the new one, and no half.
  const fresh = `${file}.${randomUUID()}`;
  await writeFile(fresh, JSON.stringify({ inputs, files: made.files }));
  await rename(fresh, file);
  return made;
}

async function isCurrent(inputs: Readonly<Record<string, string>>): Promise<boolean> {
  for (const [path, known] of Object.entries(inputs)) if ((await digestOf(path)) !== known) return false;
  return true;
}

/** Of a file's content, SHA-256; of a file that is not there, what no other has. */
export async function digestOf(path: string): Promise<string> {
  try {
    return createHash("sha256")
      .update(await readFile(path))
      .digest("hex");
  } catch {
    return "absent";
  }
}

/** What a file holds, if it is there and holds JSON. */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}
