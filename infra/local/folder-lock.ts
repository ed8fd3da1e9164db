import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { unusable } from "./data-folder.ts";
import { HostError } from "./errors.ts";

/** SQLite: "Result and Error Codes". */
const SQLITE_BUSY = 5;

/** The hold on a data folder; gone when released or when the process ends, however it ends. */
export interface FolderLock {
  release(): void;
}

/**
 * Makes sure that one host at a time uses a data folder. The lock is SQLite's, which is the kernel's: a `kill -9`
 * frees it, and no stale file has to be judged.
 *
 * @param dataDir a folder that is there
 * @throws HostError `data_folder_in_use` naming the process that has it, `data_folder_unusable`
 */
export function lockFolder(dataDir: string): FolderLock {
  const holder = join(dataDir, "host.pid");
  const lock = join(dataDir, "host.lock");
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(lock);
    database.exec("BEGIN EXCLUSIVE");
    writeFileSync(holder, `${process.pid}\n`);
  } catch (error) {
    database?.close();
    if (!isBusy(error)) throw unusable(lock, error, "remove this file, or choose another folder with --data");
    throw new HostError(
      "data_folder_in_use",
      `${dataDir}: in use by another host (process ${pidIn(holder)}); stop it, or choose another folder with --data`,
      { cause: error },
    );
  }
  const held = database;
  return { release: () => held.close() };
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}

function pidIn(path: string): string {
  try {
    return readFileSync(path, "utf8").trim() || "unknown";
  } catch {
    return "unknown";
  }
}
