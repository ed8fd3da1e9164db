import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";

const kept = z.object({
  /** The repository's: a copy of it has a copy of this. */
  root: z.string(),
  /** SHA-256 of each file that went in, by path. */
  inputs: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.string()),
});

/** How much earlier than it was written a file may be said to be: its time is the kernel's last tick (Linux: jiffies). */
const COARSE_MS = 100;

/** How the line begins that tells that bundles cannot be kept. */
export const NOT_KEPT = "bundles cannot be kept in ";

/** The folders of which this process has told that. */
const told = new Set<string>();

/** A bundle as it is made. */
export interface Made {
  /** Absolute paths of what it is made of. Packages are not among them, for what npm notes of those installed is. */
  readonly inputs: readonly string[];
  /** The text of each of its files, by name. */
  readonly files: Readonly<Record<string, string>>;
}

/**
 * The bundle that `file` keeps of an earlier call, if nothing that went in has changed; else a new one, which is kept.
 *
 * @param root the repository's
 */
export async function keptOr(file: string, root: string, make: () => Promise<Made>): Promise<Made> {
  const found = kept.safeParse(await readJson(file));
  if (found.success && found.data.root === root && (await isCurrent(found.data.inputs)))
    return { inputs: Object.keys(found.data.inputs), files: found.data.files };
  const since = Date.now() - COARSE_MS;
  const made = await make();
  // Of a source that was changed meanwhile nobody can say which text went in.
  if (await isUnchanged(made.inputs, since)) await keep(file, root, made);
  return made;
}

/** That it cannot be kept, on a full disk or a read-only one, is no reason to do without it, and told once. */
async function keep(file: string, root: string, { inputs: paths, files }: Made): Promise<void> {
  const inputs: Record<string, string> = {};
  for (const path of paths) inputs[path] = await digestOf(path);
  // Another process that looks meanwhile finds the old one or the new one, and no half.
  const fresh = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(fresh, JSON.stringify({ root, inputs, files }));
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => {});
    tellOnce(dirname(file), error);
  }
}

function tellOnce(folder: string, error: unknown): void {
  if (told.has(folder)) return;
  told.add(folder);
  // Node's own words go on with the call and its path, which is none that anybody knows.
  const why = error instanceof Error ? error.message.split(", ")[0] : String(error);
  console.error(`${NOT_KEPT}${folder}: ${why}; they take longer, for they are made anew`);
}

/** Whether nothing was written since then, in milliseconds since 1970; what is not there was not. */
async function isUnchanged(paths: readonly string[], since: number): Promise<boolean> {
  const times = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  return times.every((at) => at < since);
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
