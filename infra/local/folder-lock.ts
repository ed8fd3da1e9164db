import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HostError } from "./errors.ts";

/** The hold on a data folder; gone when released or when the process ends, however it ends. */
export interface FolderLock {
  release(): void;
}

/**
 * Makes sure that one host at a time uses a data folder. The lock is SQLite's, which is the kernel's: a `kill -9`
 * frees it, and no stale file has to be judged.
 *
 * @throws HostError `data_folder_in_use` naming the process that has it
 */
export function lockFolder(dataDir: string): FolderLock {
  mkdirSync(dataDir, { recursive: true });
  const holder = join(dataDir, "host.pid");
  const database = new DatabaseSync(join(dataDir, "host.lock"));
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw new HostError(
      "data_folder_in_use",
      `${dataDir}: in use by another host (process ${pidIn(holder)}); stop it, or choose another folder with --data`,
      { cause: error },
    );
  }
  writeFileSync(holder, `${process.pid}\n`);
  return { release: () => database.close() };
}

function pidIn(path: string): string {
  try {
    return readFileSync(path, "utf8").trim() || "unknown";
  } catch {
    return "unknown";
  }
}
