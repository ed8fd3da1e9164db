import { randomBytes } from "node:crypto";
import { linkSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CliError, EXIT } from "./errors.ts";

/** As long as the hash that it keys puts out: more adds nothing (RFC 2104 §3). */
const KEY_BYTES = 32;
const KEY = /^[A-Za-z0-9_-]{43}$/;
const FILE = "confirmation.key";

/** A new key, as it is kept. */
export function newKeyText(): string {
  return randomBytes(KEY_BYTES).toString("base64url");
}

/**
 * The key in a folder that signs confirmation tokens, made when it is first needed.
 *
 * @throws CliError `failed` when others may read it, or it is not as it was made
 */
export function keyFile(folder: string): Uint8Array {
  const path = join(folder, FILE);
  return keyOf(fileText(folder, path), path);
}

/** @throws CliError `failed` when a text is no key; it is not shown */
export function keyOf(text: string, where: string): Uint8Array {
  if (KEY.test(text)) return Buffer.from(text, "base64url");
  throw new CliError(
    EXIT.failed,
    `${where}: expected ${KEY_BYTES} bytes as base64url; take it away, and plan anew`,
  );
}

function fileText(folder: string, path: string): string {
  try {
    // Others on this machine must not be able to sign.
    if ((statSync(path).mode & 0o077) !== 0)
      throw new CliError(EXIT.failed, `${path}: expected a file that only its owner may read (chmod 600)`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  makeFile(folder, path);
  return readFileSync(path, "utf8");
}

/** Puts the whole key at its place or nothing: of two who do so at once, the first counts. */
function makeFile(folder: string, path: string): void {
  const scratch = mkdtempSync(join(folder, "key-"));
  try {
    const made = join(scratch, FILE);
    writeFileSync(made, newKeyText(), { mode: 0o600 });
    linkSync(made, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
