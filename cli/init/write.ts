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
      await mkdir(dirname(target), { recursive: true });
      // Fails where there is one, whoever has just written it (Node.js docs: file system flags, wx).
      await writeFile(target, text, { flag: "wx" });
      written.push({ path, isNew: true });
    } catch (cause) {
      const exists = cause instanceof Error && "code" in cause && cause.code === "EEXIST";
      if (!exists)
        throw new CliError(EXIT.failed, `${target}: cannot be written: ${reasonOf(cause)}`, { cause });
      written.push({ path, isNew: false });
    }
  }
  return written;
}
