import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { HostError, messageOf } from "./errors.ts";

const ADVICE = "choose another folder with --data";

/**
 * Makes the data folder if it is not there.
 *
 * @returns its real path
 * @throws HostError `data_folder_unusable` when it is none, or nothing can be written there
 */
export function openDataFolder(path: string): string {
  const folder = resolve(path);
  try {
    make(folder);
    const real = realpathSync(folder);
    if (!statSync(real).isDirectory()) throw new Error("it is a file");
    accessSync(real, constants.W_OK | constants.X_OK);
    return real;
  } catch (error) {
    throw unusable(folder, error);
  }
}

/** What is said of a data folder, or of a file in it, that cannot be used. */
export function unusable(path: string, cause: unknown, advice = ADVICE): HostError {
  return new HostError("data_folder_unusable", `${path}: cannot be used: ${messageOf(cause)}; ${advice}`, {
    cause,
  });
}

/** Folder by folder: below /proc, Node's recursive mkdir tries for ever (Node 24). */
function make(folder: string): void {
  if (existsSync(folder)) return;
  make(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // somebody else was faster
  }
}
