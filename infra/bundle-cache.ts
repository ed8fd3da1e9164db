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
  await keep(file, root, made, since);
  return made;
}

/** That it cannot be kept, on a full disk or a read-only one, is no reason to do without it, and told once. */
async function keep(file: string, root: string, made: Made, since: number): Promise<void> {
  const { files } = made;
  const inputs = await digestsOf(made.inputs);
  // Of a source that was changed meanwhile nobody can say which text went in; hence the look comes after the digests.
  if (!(await areUnchanged(made.inputs, since))) return;
  try {
    await writeWhole(file, JSON.stringify({ root, inputs, files }));
  } catch (error) {
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

/**
 * Writes a file, and the folder that it lies in. Another process that looks meanwhile finds the old one or the new one, and
 * no half.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(fresh, text);
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => {});
    throw error;
  }
}

/**
 * Whether no file was changed since then, in milliseconds since 1970; what is not there was not. Asked for is when its
 * entry was changed, which nobody can set back: a file that is moved here, or copied with its times, is an old one by the
 * other (inode(7), st_ctime and st_mtime).
 */
export async function areUnchanged(paths: readonly string[], since: number): Promise<boolean> {
  const times = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ ctimeMs }) => ctimeMs,
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

/** Of each file's content what {@link digestOf} gives, by path. */
export async function digestsOf(paths: readonly string[]): Promise<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const path of paths) digests[path] = await digestOf(path);
  return digests;
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
