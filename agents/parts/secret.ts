import { readFile } from "node:fs/promises";
import { FatalError } from "sluice";
import * as z from "zod";

/** Where a secret is. Settings are readable by whoever may read the function's code, so they hold no secret itself. */
export const secretRef = z
  .string()
  .regex(
    /^(?:env:[A-Za-z_][A-Za-z0-9_]*|file:\/.+)$/,
    "expected env:NAME of an environment variable or file:/PATH of a file, and not the secret itself",
  );

/**
 * The secret itself, without the white space around it. No message has it.
 *
 * @throws FatalError that says where there is none
 */
export async function readSecret(ref: string): Promise<string> {
  const secret = (await (ref.startsWith("env:") ? fromEnvironment : fromFile)(ref)).trim();
  // What else a header cannot carry would be told by an error that quotes it.
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new FatalError(`${ref}: expected a secret of printable ASCII characters without spaces`);
  return secret;
}

async function fromEnvironment(ref: string): Promise<string> {
  const secret = process.env[ref.slice("env:".length)];
  if (secret === undefined) throw new FatalError(`${ref}: the environment variable is not set`);
  return secret;
}

async function fromFile(ref: string): Promise<string> {
  try {
    return await readFile(ref.slice("file:".length), "utf8");
  } catch {
    throw new FatalError(`${ref}: the file cannot be read`);
  }
}
