import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { CliError, EXIT } from "./errors.ts";
import type { Words } from "./task.ts";

/**
 * The message out of the command line and a file.
 *
 * @throws CliError `usage` when there is neither, or the file is not what it should be
 */
export async function readWords(words: readonly string[], path: string | undefined): Promise<Words> {
  const text = words.join(" ");
  if (path === undefined) {
    if (text !== "") return text;
    throw new CliError(EXIT.usage, "nothing to ask: add a message, or --file PATH (- is stdin)");
  }
  const part = await readPart(path);
  if (text !== "") return { parts: [{ text }, part] };
  return "text" in part ? part.text : { parts: [part] };
}

/**
 * The answer out of the command line or a file.
 *
 * @throws CliError `usage` when there is none or more than one, or it is not what it should be
 */
export async function readReply(
  words: readonly string[],
  { file, data }: { readonly file?: string | undefined; readonly data?: string | undefined },
): Promise<unknown> {
  const text = words.join(" ");
  const given = [text || undefined, file, data].filter((one) => one !== undefined).length;
  if (given !== 1)
    throw new CliError(EXIT.usage, "expected one answer: a text, --file PATH (- is stdin), or --data JSON");
  if (file !== undefined) {
    const part = await readPart(file);
    return "text" in part ? part.text : part.data;
  }
  if (data === undefined) return text;
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new CliError(EXIT.usage, "--data: expected JSON; a text needs no --data", { cause });
  }
}

async function readPart(path: string): Promise<{ text: string } | { data: unknown }> {
  const text = await readText(path);
  if (!path.endsWith(".json")) return { text };
  try {
    return { data: JSON.parse(text) };
  } catch (cause) {
    throw new CliError(EXIT.usage, `--file ${path}: expected JSON, as its name says`, { cause });
  }
}

async function readText(path: string): Promise<string> {
  const name = path === "-" ? "stdin" : path;
  try {
    const bytes = path === "-" ? await buffer(process.stdin) : await readFile(path);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? ` (${cause.code})` : "";
    const problem = cause instanceof TypeError ? "expected UTF-8 text" : `cannot be read${reason}`;
    throw new CliError(EXIT.usage, `--file ${name}: ${problem}`, { cause });
  }
}
