import { createHash } from "node:crypto";
import type { Part } from "../agents/types.ts";
import { type ArtifactRef, artifactRef } from "../wire/index.ts";
import { ArtifactError } from "./errors.ts";
import { toJson } from "./json.ts";

/** The largest artifact, in bytes: it is held in memory once by whoever makes it and once by whoever publishes it. */
export const MAX_ARTIFACT_BYTES = 64 * 1024 * 1024;
/** The longest file name and the longest media type of an artifact, in characters: its event holds them. */
export const MAX_LABEL = 255;
/** The most artifacts of a task: a result lists them all within one event. */
export const MAX_ARTIFACTS = 500;

/** An artifact's bytes, with what describes them on the wire. */
export interface Encoded {
  readonly ref: ArtifactRef;
  readonly bytes: Uint8Array;
}

/** type/subtype, with parameters or without (RFC 9110 §8.3.1). */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;[^\p{Cc}]*)?$/u;

const EXTENSIONS: Readonly<Record<string, string>> = {
  "text/plain": ".txt",
  "text/markdown": ".md",
  "text/html": ".html",
  "text/csv": ".csv",
  "application/json": ".json",
};

interface Blob {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename?: string;
}

/** What the types already say, for handlers that nobody checks types of. */
function checkPart(name: string, part: Part): void {
  const is = (expected: string) =>
    new ArtifactError(`artifact ${JSON.stringify(name)}: a part: expected ${expected}`);
  if (typeof part !== "object" || part === null) throw is("{ text }, { data } or { bytes, mediaType }");
  if ("text" in part ? typeof part.text !== "string" : "bytes" in part && !(part.bytes instanceof Uint8Array))
    throw is("text to be a string, and bytes a Uint8Array");
  if (!("text" in part) && !("bytes" in part) && part.data === undefined)
    throw is("data that is not undefined");
  if (part.mediaType === undefined ? "bytes" in part : !MEDIA_TYPE.test(part.mediaType))
    throw is("a mediaType such as text/plain");
}

/** A file's name without folders, and without what a terminal would obey. */
function plainName(filename: string): string {
  return (filename.split(/[\\/]/).at(-1) ?? "").replace(/\p{Cc}/gu, "").toWellFormed();
}

function blobOf(name: string, part: Part): Blob {
  if ("bytes" in part) return part;
  const text = "text" in part ? part.text : toJson(part.data, `artifact ${JSON.stringify(name)}`);
  const mediaType = part.mediaType ?? ("text" in part ? "text/plain" : "application/json");
  return { bytes: Buffer.from(text), mediaType, filename: part.filename };
}

/** Several parts are one object in the end: texts follow each other line by line, anything else becomes JSON. */
function merge(name: string, parts: readonly Part[]): Blob {
  const texts = parts.flatMap((part) => ("text" in part ? [part.text] : []));
  const [first] = parts;
  if (first === undefined)
    throw new ArtifactError(`artifact ${JSON.stringify(name)}: expected a part, got none`);
  if (parts.length === 1) return blobOf(name, first);
  const { filename } = first;
  if (texts.length === parts.length)
    return blobOf(name, { text: texts.join("\n"), mediaType: first.mediaType, filename });
  const data = parts.map((part) =>
    "bytes" in part
      ? {
          raw: Buffer.from(part.bytes).toString("base64"),
          mediaType: part.mediaType,
          filename: part.filename,
        }
      : part,
  );
  return blobOf(name, { data: { parts: data }, filename });
}

/**
 * Turns what a handler gives out into one object and its description.
 *
 * @param id the step's name, which becomes the artifact's id
 * @throws ArtifactError when there is no part, or more than {@link MAX_ARTIFACT_BYTES}
 */
export function encodeArtifact(
  taskId: string,
  name: string,
  parts: string | Part | readonly Part[],
): Encoded {
  const list: readonly Part[] =
    typeof parts === "string" ? [{ text: parts }] : Array.isArray(parts) ? parts : [parts as Part];
  for (const part of list) checkPart(name, part);
  const { bytes, mediaType, filename } = merge(name, list);
  if (bytes.byteLength > MAX_ARTIFACT_BYTES)
    throw new ArtifactError(
      `artifact ${JSON.stringify(name)}: expected at most ${MAX_ARTIFACT_BYTES} bytes, got ${bytes.byteLength}`,
    );
  for (const [field, label] of Object.entries({ filename, mediaType }))
    if (label !== undefined && label.length > MAX_LABEL)
      throw new ArtifactError(
        `artifact ${JSON.stringify(name)}: ${field}: expected at most ${MAX_LABEL} characters, got ${label.length}`,
      );
  const id = artifactIdOf(name);
  const extension = EXTENSIONS[mediaType.split(";")[0]?.trim() ?? ""] ?? "";
  const ref = artifactRef(taskId, {
    id,
    name: plainName(filename ?? (name.includes(".") ? name : `${name}${extension}`)) || id,
    mediaType,
    digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
    sizeBytes: bytes.byteLength,
  });
  return { ref, bytes };
}

/** The artifacts that a task has given out. */
export class Artifacts {
  readonly #refs = new Map<string, ArtifactRef>();

  get all(): readonly ArtifactRef[] {
    return [...this.#refs.values()];
  }

  /** @throws ArtifactError when there is one of this id, or {@link MAX_ARTIFACTS} of them */
  add(ref: ArtifactRef): void {
    const of = `artifact ${JSON.stringify(ref.id)}`;
    if (this.#refs.has(ref.id)) throw new ArtifactError(`${of}: expected an id that no other artifact has`);
    if (this.#refs.size >= MAX_ARTIFACTS)
      throw new ArtifactError(`${of}: expected at most ${MAX_ARTIFACTS} in a task`);
    this.#refs.set(ref.id, ref);
  }
}

/** An artifact's id out of its name: ids take only letters, digits, `_` and `-` (docs/wire.md, artifact). */
export function artifactIdOf(name: string): string {
  const id = name
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 128);
  if (id === "")
    throw new ArtifactError(`artifact ${JSON.stringify(name)}: expected a name with a letter or digit in it`);
  return id;
}
