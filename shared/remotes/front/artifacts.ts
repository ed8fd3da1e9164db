import { createHash } from "node:crypto";
import type { Part as OwnPart } from "../../agents/types.ts";
import { artifactIdOf, MAX_LABEL } from "../../steps/artifacts.ts";
import type { Part } from "../../wire/index.ts";
import type { SeenArtifact } from "../exchange/index.ts";
import type { Mark, ToldArtifact } from "./told.ts";

/** Characters of what an artifact is called. */
const MAX_NAME = 100;
/** Ids that a result's own artifacts have (docs/agents.md, how it ends). */
const RESERVED = ["data", "full-text"];
/** type/subtype, with parameters or without (RFC 9110 §8.3.1). */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;[^\p{Cc}]*)?$/u;

interface Whole {
  readonly name: string;
  readonly parts: readonly Part[];
}

/**
 * The artifacts of a remote task: what it has of them, put together from the pieces that came, and what of that was given
 * out. The second is told again when the handler is run again, the first may be lost: the remote has it.
 */
export class Gathered {
  readonly #wholes = new Map<string, Whole>();
  readonly #given = new Map<string, { readonly as: string; readonly mark: Mark }>();
  readonly #taken = new Set(RESERVED);
  /** Whether any was given out that a requester can read without fetching it. */
  #readable = false;

  get readable(): boolean {
    return this.#readable;
  }

  /** Takes a piece of an artifact, or the whole of one. */
  take({ id, name, parts, append }: SeenArtifact): void {
    const before = append ? this.#wholes.get(id) : undefined;
    const whole = { name: name ?? before?.name ?? id, parts: joined([...(before?.parts ?? []), ...parts]) };
    this.#wholes.set(id, whole);
  }

  /** What is there and was not given out. What changed otherwise than by growing is given out under another name. */
  news(): ToldArtifact[] {
    const told: ToldArtifact[] = [];
    // Names are taken when they are given out: those of this round are not, yet.
    const soon = new Set<string>();
    for (const [id, { name, parts }] of this.#wholes) {
      if (parts.length === 0) continue;
      const given = this.#given.get(id);
      const mark = markOf(parts);
      if (given?.mark.digest === mark.digest) continue;
      const rest = given && restOf(parts, given.mark);
      const as = rest === undefined ? this.#nameFor(name, soon) : given?.as;
      if (as === undefined) continue;
      told.push({ id, as, grows: mark.length !== undefined, parts: rest ?? parts, mark });
    }
    return told;
  }

  /** Notes what is given out. */
  gave({ id, as, mark, parts }: ToldArtifact): void {
    this.#given.set(id, { as, mark });
    this.#taken.add(artifactIdOf(as));
    this.#readable ||= parts.every((part) => "text" in part || "data" in part);
  }

  #nameFor(name: string, soon: Set<string>): string {
    const base = nameOf(name);
    for (let n = 1; ; n++) {
      const as = n === 1 ? base : `${base}-${n}`;
      const id = artifactIdOf(as);
      if (this.#taken.has(id) || soon.has(id)) continue;
      soon.add(id);
      return as;
    }
  }
}

/** What a remote calls an artifact, as the name of a step and of a file. */
function nameOf(name: string): string {
  const plain = name
    .toWellFormed()
    .replace(/[\p{C}\\/#]+/gu, "-")
    .trim()
    .slice(0, MAX_NAME)
    .toWellFormed();
  return /[A-Za-z0-9_]/.test(plain) ? plain : "artifact";
}

/** Texts that follow each other are one: they came in pieces. */
function joined(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const goesOn = last !== undefined && "text" in last && "text" in part && !otherThan(last, part);
    if (goesOn) all[all.length - 1] = { ...last, text: last.text + part.text };
    else all.push(part);
  }
  return all.filter((part) => !("text" in part) || part.text !== "" || all.length > 1);
}

/** Whether a text is of another kind than the one before it. */
function otherThan(last: Part, { mediaType, filename }: Part): boolean {
  return (
    (mediaType !== undefined && mediaType !== last.mediaType) ||
    (filename !== undefined && filename !== last.filename)
  );
}

function digestOf(of: unknown): string {
  return createHash("sha256").update(JSON.stringify(of)).digest("hex");
}

function markOf(parts: readonly Part[]): Mark {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined && "text" in only)
    return { digest: digestOf(only.text), length: only.text.length };
  return { digest: digestOf(parts) };
}

/** What of a text follows what was given out of it; nothing, where it is not the same text that has grown. */
function restOf(parts: readonly Part[], { digest, length }: Mark): readonly Part[] | undefined {
  const [only] = parts;
  if (length === undefined || parts.length !== 1 || only === undefined || !("text" in only)) return undefined;
  if (digestOf(only.text.slice(0, length)) !== digest) return undefined;
  return [{ text: only.text.slice(length) }];
}

/** A part of a remote's as a handler gives it out; labels that we could not give out are left out. */
export function ownPart(part: Part): OwnPart {
  const mediaType = part.mediaType !== undefined && isLabel(part.mediaType) ? part.mediaType : undefined;
  const filename =
    part.filename !== undefined && part.filename.length <= MAX_LABEL ? part.filename : undefined;
  const labels = {
    ...(mediaType !== undefined && { mediaType }),
    ...(filename !== undefined && { filename }),
  };
  if ("text" in part) return { text: part.text, ...labels };
  if ("raw" in part)
    return {
      bytes: Buffer.from(part.raw, "base64"),
      ...labels,
      mediaType: mediaType ?? "application/octet-stream",
    };
  if ("url" in part) return { data: { url: part.url, ...labels } };
  return { data: part.data, ...(filename !== undefined && { filename }) };
}

function isLabel(mediaType: string): boolean {
  return mediaType.length <= MAX_LABEL && MEDIA_TYPE.test(mediaType);
}
