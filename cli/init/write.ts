import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CliError, EXIT } from "../errors.ts";
import { reasonOf } from "../place.ts";

/** A file that was to be written. */
export interface Written {
  /** In the folder. */
  readonly path: string;
  /** False when there was one already, which stays as it is. */
  readonly isNew: boolean;
}

/**
 * Writes files that are not there yet.
 *
 * @throws CliError `failed` when the folder cannot be written to
 */
export async function writeNew(
  folder: string,
  files: readonly { readonly path: string; readonly text: string }[],
): Promise<readonly Written[]> {
  const written: Written[] = [];
  for (const { path, text } of files) {
    const target = join(folder, path);
    try {
      await makeFolder(dirname(target));
      // Fails where there is one, whoever has just written it (Node.js docs: file system flags, wx).
      await writeFile(target, text, { flag: "wx" });
      written.push({ path, isNew: true });
    } catch (cause) {
      if (!isSystemError(cause, "EEXIST"))
        throw new CliError(EXIT.failed, `${target}: cannot be written: ${reasonOf(cause)}`, { cause });
      written.push({ path, isNew: false });
    }
  }
  return written;
}

/**
 * Makes a folder, and those around it that are not there, one after the other: where no folder can be made although the
 * one around it is there, as in `/proc`, Node's own `recursive` tries for ever.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (isSystemError(error, "EEXIST")) return;
    const around = dirname(path);
    if (!isSystemError(error, "ENOENT") || around === path) throw error;
    await makeFolder(around);
    await mkdir(path);
  }
}

function isSystemError(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
