import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
/** What a copy does without: it is large, of this place alone, or linked. */
const LEFT_OUT: ReadonlySet<string> = new Set([".cache", ".git", "node_modules"]);

/** A change of the project with one fault in it, and what is written above its diff. */
export interface Patch {
  readonly name: string;
  readonly path: string;
  /** The fault in words. */
  readonly story: string;
  /** The lines `Name: value` after that. */
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * The patches of a folder, in the order of their names.
 *
 * @param names those that are wanted; all of them when there are none
 * @throws Error when there is none of a name
 */
export function readPatches(folder: string, names: readonly string[] = []): Patch[] {
  const all = readdirSync(folder)
    .filter((file) => file.endsWith(".patch"))
    .sort()
    .map((file) => readPatch(join(folder, file)));
  const missing = names.find((name) => !all.some((patch) => patch.name === name));
  if (missing !== undefined) throw new Error(`no patch ${missing} in ${folder}`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

function readPatch(path: string): Patch {
  const [head = ""] = readFileSync(path, "utf8").split(/^--- /m);
  const [story = "", ...rest] = head.trim().split("\n\n");
  const lines = rest.join("\n").matchAll(/^([A-Z][A-Za-z ]*): (.+)$/gm);
  const fields = Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
  return { name: basename(path, ".patch"), path, story: story.replaceAll("\n", " "), fields };
}

/** Why a patch does not apply to a folder; nothing when it does. */
export function problemOf({ path }: Patch, folder = ROOT): string | undefined {
  const { status, stderr } = spawnSync("git", ["apply", "--check", path], { cwd: folder, encoding: "utf8" });
  return status === 0 ? undefined : stderr.trim();
}

/**
 * Does something with a copy of the project that has the same packages.
 *
 * @param patch what is changed in it
 * @throws Error when the patch does not apply any more
 */
export async function inCopy<T>(patch: Patch | undefined, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), `sluice-${patch?.name ?? "copy"}-`));
  try {
    for (const entry of readdirSync(ROOT))
      if (!LEFT_OUT.has(entry)) cpSync(join(ROOT, entry), join(copy, entry), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    if (patch !== undefined) apply(patch, copy);
    return await work(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function apply({ name, path }: Patch, copy: string): void {
  const applied = spawnSync("git", ["apply", path], { cwd: copy, encoding: "utf8" });
  if (applied.status !== 0) throw new Error(`${name}: the patch does not apply any more: ${applied.stderr}`);
}
