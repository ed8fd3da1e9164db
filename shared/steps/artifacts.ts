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

/** What a handler gives out as one artifact, or adds to one. */
export type Parts = string | Part | readonly Part[];

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

function listOf(name: string, parts: Parts): readonly Part[] {
  const list: readonly Part[] =
    typeof parts === "string" ? [{ text: parts }] : Array.isArray(parts) ? parts : [parts as Part];
  for (const part of list) checkPart(name, part);
  return list;
}

/** What is known of an artifact's object but its bytes. */
interface Label {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly version?: number;
}

/** The id and the file name of an object that a handler names so, or not. */
function labelOf(name: string, { mediaType, filename }: Omit<Blob, "bytes">): Label {
  for (const [field, label] of Object.entries({ filename, mediaType }))
    if (label !== undefined && label.length > MAX_LABEL)
      throw new ArtifactError(
        `artifact ${JSON.stringify(name)}: ${field}: expected at most ${MAX_LABEL} characters, got ${label.length}`,
      );
  const id = artifactIdOf(name);
  const extension = EXTENSIONS[mediaType.split(";")[0]?.trim() ?? ""] ?? "";
  const plain = plainName(filename ?? (name.includes(".") ? name : `${name}${extension}`));
  return { id, name: plain || id, mediaType };
}

function checkSize(name: string, bytes: number): void {
  if (bytes > MAX_ARTIFACT_BYTES)
    throw new ArtifactError(
      `artifact ${JSON.stringify(name)}: expected at most ${MAX_ARTIFACT_BYTES} bytes, got ${bytes}`,
    );
}

function encoded(taskId: string, label: Label, bytes: Uint8Array): Encoded {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { ref: artifactRef(taskId, { ...label, digest, sizeBytes: bytes.byteLength }), bytes };
}

/**
 * Turns what a handler gives out into one object and its description.
 *
 * @param name the step's name, which becomes the artifact's id
 * @throws ArtifactError when there is no part, or more than {@link MAX_ARTIFACT_BYTES}
 */
export function encodeArtifact(taskId: string, name: string, parts: Parts): Encoded {
  const { bytes, ...of } = merge(name, listOf(name, parts));
  checkSize(name, bytes.byteLength);
  return encoded(taskId, labelOf(name, of), bytes);
}

/** What is appended to an artifact, and how the whole is described. */
export interface Addition {
  readonly label: Label;
  readonly bytes: Uint8Array;
}

/**
 * Takes together what a handler appends: text and bytes, one right after the other, all of one media type. JSON is
 * refused, for nothing that follows it leaves it JSON.
 *
 * @param name the artifact's own, whichever call this is
 * @param of.version which call of this name it is: each makes an object of its own
 * @param of.former the artifact so far
 * @throws ArtifactError when it does not go with what is there, or the whole exceeds {@link MAX_ARTIFACT_BYTES}
 */
export function additionTo(
  name: string,
  parts: Parts,
  of: { readonly version: number; readonly former?: ArtifactRef | undefined },
): Addition {
  const list = listOf(name, parts);
  if (list.length === 0) throw new ArtifactError(`${artifact(name)}: expected a part, got none`);
  const named = list.find((part) => part.mediaType !== undefined)?.mediaType;
  const filename = list.find((part) => part.filename !== undefined)?.filename;
  const mediaType = of.former?.mediaType ?? named ?? "text/plain";
  const own = labelOf(name, { mediaType, ...(filename !== undefined && { filename }) });
  const label = { ...own, name: of.former?.name ?? own.name, version: of.version };
  for (const part of list) checkAppended(name, part, label);
  const blobs = list.map((part) => blobOf(name, part).bytes);
  const size = blobs.reduce((sum, { byteLength }) => sum + byteLength, 0);
  checkSize(name, size + (of.former?.sizeBytes ?? 0));
  return { label, bytes: Buffer.concat(blobs) };
}

function checkAppended(name: string, part: Part, label: Label): void {
  if (!("text" in part) && !("bytes" in part))
    throw new ArtifactError(`${artifact(name)}: expected text or bytes to append, got data`);
  const same = (field: "mediaType" | "filename", expected: string, got: string) => {
    if (got !== expected)
      throw new ArtifactError(
        `${artifact(name)}: ${field}: expected ${JSON.stringify(expected)} as before, or none, got ${JSON.stringify(got)}`,
      );
  };
  if (part.mediaType !== undefined) same("mediaType", label.mediaType, part.mediaType);
  if (part.filename !== undefined) same("filename", label.name, plainName(part.filename) || label.id);
}

/** The whole artifact: what there was, and right after it what is added. */
export function grown(taskId: string, { label, bytes }: Addition, before: Uint8Array): Encoded {
  return encoded(taskId, label, Buffer.concat([before, bytes]));
}

/** The artifacts that a task has given out, each in its last version. */
export class Artifacts {
  /** By id: whose it is, by the name that its steps share, and what was given out last. */
  readonly #given = new Map<string, { readonly name: string; readonly ref?: ArtifactRef }>();

  get all(): readonly ArtifactRef[] {
    return [...this.#given.values()].flatMap(({ ref }) => ref ?? []);
  }

  /**
   * What was given out under this name.
   *
   * @throws ArtifactError when that is another artifact's id
   */
  of(name: string): ArtifactRef | undefined {
    const id = artifactIdOf(name);
    const given = this.#given.get(id);
    if (given !== undefined && given.name !== name) throw taken(id);
    return given?.ref;
  }

  /**
   * Takes an id for what is about to be given out under a name.
   *
   * @throws ArtifactError when there is one of this id, or {@link MAX_ARTIFACTS} of them
   */
  begin(id: string, name: string): void {
    if (this.#given.has(id)) throw taken(id);
    if (this.#given.size >= MAX_ARTIFACTS)
      throw new ArtifactError(`${artifact(id)}: expected at most ${MAX_ARTIFACTS} in a task`);
    this.#given.set(id, { name });
  }

  /**
   * Notes what is given out, in place of what was before.
   *
   * @throws ArtifactError as {@link Artifacts.begin}, unless it is of the same name
   */
  give(ref: ArtifactRef, name: string): void {
    if (this.#given.get(ref.id)?.name !== name) this.begin(ref.id, name);
    this.#given.set(ref.id, { name, ref });
  }
}

function artifact(id: string): string {
  return `artifact ${JSON.stringify(id)}`;
}

function taken(id: string): ArtifactError {
  return new ArtifactError(`${artifact(id)}: expected an id that no other artifact has`);
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
