import { open, opendir, realpath, stat } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { FatalError } from "sluice";
import * as z from "zod";
import { textOfHtml } from "./html.ts";

/** How many sources are read for one task. */
export const MAX_SOURCES = 32;
/** How many directory entries are looked at for texts; a folder may hold anything. */
const MAX_ENTRIES = 10_000;
const MAX_REDIRECTS = 5;
const TEXT_FILE = /\.(?:md|txt)$/i;
const TEXT_TYPE = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b)/;
/** Worth another attempt later (RFC 9110 §15.5.9, RFC 6585 §4). */
const PASSING: ReadonlySet<number> = new Set([408, 429]);

/** A source as a task names it: a text of its own, a file below the operator's folder, or a page of an allowed host. */
export const source = z.union([
  z.strictObject({ text: z.string().min(1), title: z.string().trim().min(1).max(200).optional() }),
  z.strictObject({ file: z.string().min(1).max(500) }),
  z.strictObject({ url: z.url({ protocol: /^https?$/ }).max(2_000) }),
]);
export type Source = z.output<typeof source>;

/** What the operator allows. */
export interface Allowed {
  /** The folder below which files may be read, as an absolute path. */
  readonly folder?: string | undefined;
  /** Whose pages may be read: host names, with the port where it is not the usual one. */
  readonly hosts: readonly string[];
  /** How much of a source is read, in bytes. */
  readonly maxBytes: number;
}

/** What was read of a source; `cut` when it has more than that. */
export interface Material {
  readonly text: string;
  readonly bytes: number;
  readonly cut: boolean;
}

/**
 * Whether the operator allows a source at all, without looking at it.
 *
 * @throws FatalError that names the setting
 */
export function check(source: Source, { folder, hosts }: Allowed): void {
  if ("file" in source && folder === undefined)
    throw new FatalError(`files are not allowed (see \`folder\` of this agent in agents.yaml)`);
  if (!("url" in source)) return;
  const { host, username, password } = new URL(source.url);
  if (username !== "" || password !== "")
    throw new FatalError("a URL must hold no user name and no password");
  if (hosts.includes(host)) return;
  const known = hosts.join(", ") || "none (see `hosts` of this agent in agents.yaml)";
  throw new FatalError(`pages of ${host} are not allowed; allowed: ${known}`);
}

/**
 * The text files below the folder, the first {@link MAX_SOURCES} by name.
 *
 * @throws FatalError when the folder cannot be listed
 */
export async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  let looked = 0;
  try {
    for await (const entry of await opendir(folder, { recursive: true })) {
      if (++looked > MAX_ENTRIES) break;
      if (entry.isFile() && TEXT_FILE.test(entry.name))
        found.push(relative(folder, join(entry.parentPath, entry.name)));
    }
  } catch {
    // The error names the folder, which is the operator's affair alone.
    throw new FatalError("the folder of texts cannot be listed (see `folder` of this agent in agents.yaml)");
  }
  return found.sort().slice(0, MAX_SOURCES);
}

/**
 * Reads a source.
 *
 * @throws FatalError when it is not allowed, is not there, or is no text; another error when it may work later
 */
export async function read(source: Source, allowed: Allowed, signal: AbortSignal): Promise<Material> {
  check(source, allowed);
  if ("file" in source) return readBelow(allowed.folder ?? "", source.file, allowed.maxBytes);
  if ("url" in source) return readPage(source.url, allowed, signal);
  return materialOf(Buffer.from(source.text), allowed.maxBytes, (bytes) => bytes.toString("utf8"));
}

function materialOf(all: Buffer, maxBytes: number, decode: (bytes: Buffer) => string): Material {
  const bytes = all.subarray(0, maxBytes);
  return { text: decode(bytes), bytes: bytes.length, cut: all.length > maxBytes };
}

async function readBelow(folder: string, file: string, maxBytes: number): Promise<Material> {
  const missing = new FatalError(`there is no file ${file}`);
  const [root, path] = await Promise.all([realpath(folder), realpath(resolve(folder, file))]).catch(() => {
    throw missing;
  });
  // What a link or `..` leads out of the folder to is as good as not there.
  if (!path.startsWith(root + sep) || !(await stat(path)).isFile()) throw missing;
  await using handle = await open(path);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxBytes + 1), 0, maxBytes + 1);
  return materialOf(buffer.subarray(0, bytesRead), maxBytes, (bytes) => bytes.toString("utf8"));
}

async function readPage(url: string, allowed: Allowed, signal: AbortSignal): Promise<Material> {
  const response = await follow(url, allowed, signal);
  const { ok, status } = response;
  if (!ok) {
    await response.body?.cancel();
    const answered = `${new URL(response.url).host} answered ${status}`;
    throw status >= 500 || PASSING.has(status) ? new Error(answered) : new FatalError(answered);
  }
  const type = response.headers.get("content-type") ?? "text/plain";
  if (!TEXT_TYPE.test(type)) {
    await response.body?.cancel();
    throw new FatalError(`expected a text, got ${type}`);
  }
  const decoder = decoderOf(type);
  const { text, ...rest } = materialOf(
    await firstBytes(response, allowed.maxBytes + 1),
    allowed.maxBytes,
    (of) => decoder.decode(of),
  );
  return { text: type.startsWith("text/html") ? textOfHtml(text) : text, ...rest };
}

/** Each stop of a redirect must be allowed as the first one is. */
async function follow(url: string, allowed: Allowed, signal: AbortSignal): Promise<Response> {
  for (let stops = 0; stops <= MAX_REDIRECTS; stops++) {
    check({ url }, allowed);
    const response = await fetch(url, {
      signal,
      redirect: "manual",
      headers: { accept: "text/*, application/json" },
    });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    url = new URL(location, url).href;
  }
  throw new FatalError(`more than ${MAX_REDIRECTS} redirects`);
}

async function firstBytes(response: Response, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= most) break;
  }
  return Buffer.concat(chunks).subarray(0, most);
}

function decoderOf(type: string) {
  const [, charset = "utf-8"] = /charset="?([\w-]+)/i.exec(type) ?? [];
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}
