import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ConfigError, type Finding } from "./config-error.ts";

/** Reads a file, or gives `undefined` if there is none. */
export type ReadFile = (path: string) => string | undefined;

/**
 * The file's text; `undefined` if there is no such file.
 *
 * @throws ConfigError when there is something that cannot be read, such as a folder
 */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ENOENT") return undefined;
    // Node names no file where a folder is read (EISDIR).
    throw new ConfigError(`${path}: expected a file that can be read: ${error.message}`, { cause: error });
  }
}

/**
 * The certificates that `nats.tls.ca` names.
 *
 * @param named as it stands there, if it does
 * @param folder to which it is relative
 */
export function readAuthority(
  named: string | undefined,
  folder: string,
  read: ReadFile,
): { readonly ca?: string; readonly findings: readonly Finding[] } {
  if (named === undefined) return { findings: [] };
  const path = resolve(folder, named.slice("file:".length));
  const amiss = (message: string) => ({ findings: [{ path: ["nats", "tls", "ca"], message }] });
  try {
    const ca = read(path);
    if (ca === undefined) return amiss(`expected a file, ${path} is none`);
    if (!ca.includes("-----BEGIN CERTIFICATE-----"))
      return amiss(`expected certificates as PEM text in ${path}`);
    return { ca, findings: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return amiss(error.message);
  }
}
