import { createHash } from "node:crypto";
import type { ObjectStore, Objm } from "@nats-io/obj";
import type { NatsConnection } from "@nats-io/transport-node";
import { within } from "./deadline.ts";

/** The object store in which artifacts are handed over (docs/wire.md, artifacts). */
export const ARTIFACTS_BUCKET = "a2a-artifacts";

/** An artifact's bytes under its name in the bucket. */
export interface ArtifactObject {
  readonly key: string;
  readonly mediaType: string;
  /** `sha256:` and 64 lower-case hexadecimal digits. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/**
 * Stores an artifact's bytes; the bucket is created if there is none. Nothing is sent when the bucket holds these bytes
 * under this name already, so that it can be repeated at will.
 *
 * @throws Error when the bytes are not those of the digest
 */
export async function putObject(nc: NatsConnection, object: ArtifactObject): Promise<void> {
  const { key, mediaType, digest, bytes } = object;
  const sha = createHash("sha256").update(bytes).digest();
  if (digest !== `sha256:${sha.toString("hex")}`)
    throw new Error(`artifact ${key}: its digest ${digest} is not that of its ${bytes.length} bytes`);
  const bucket = await artifacts(nc);
  const stored = await bucket.info(key);
  if (stored !== null && !stored.deleted && sameDigest(stored.digest, sha)) return;
  await bucket.putBlob({ name: key, metadata: { media_type: mediaType } }, bytes);
}

/** How long an object's next piece may take, in milliseconds: pieces that the bucket has lost never come. */
const IDLE_MS = 5_000;

/**
 * Reads an artifact's bytes.
 *
 * @param maxBytes a larger object is not read, whatever its description says of its size
 * @returns null when the bucket, or the name in it, does not exist
 * @throws Error when what is stored is too large, incomplete, not what its digest says, or a link to elsewhere
 */
export async function getObject(
  nc: NatsConnection,
  key: string,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<Uint8Array | null> {
  const bucket = await existing(nc);
  const info = (await bucket?.info(key)) ?? null;
  if (bucket === null || info === null || info.deleted) return null;
  // A link may lead into another bucket, of which its writer was told nothing (NATS ADR-20).
  if (info.options?.link !== undefined) throw new Error("expected an object, got a link");
  if (info.size > maxBytes) throw tooLarge(maxBytes, info.size);
  const object = await bucket.get(key);
  if (object === null) return null;
  // What goes wrong is also told by the stream.
  object.error.catch(() => undefined);
  return collect(object.data, maxBytes);
}

/**
 * Deletes an artifact's bytes. The bucket keeps a note that there was something of this name (NATS ADR-20). The note
 * comes first, and the bytes go then: so they may be there still although the note says that they are not.
 *
 * @returns whether there was anything to delete
 */
export async function deleteObject(nc: NatsConnection, key: string): Promise<boolean> {
  const bucket = await existing(nc);
  const info = (await bucket?.info(key)) ?? null;
  if (bucket === null || info === null) return false;
  const { purged } = await bucket.delete(key);
  return !info.deleted || purged > 0;
}

/**
 * Whether the bucket keeps a note that there was something of a name, and it is deleted (NATS ADR-20).
 *
 * @throws what NATS throws, as of a connection that may not read the bucket
 */
export async function wasDeleted(nc: NatsConnection, key: string): Promise<boolean> {
  const bucket = await existing(nc);
  return (await bucket?.info(key))?.deleted === true;
}

async function collect(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const reader = stream.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const next = await within(reader.read(), IDLE_MS);
      if (next === undefined) throw new Error(`nothing came for ${IDLE_MS} ms after ${bytes} bytes`);
      if (next.done) return Buffer.concat(pieces);
      bytes += next.value.byteLength;
      if (bytes > maxBytes) throw tooLarge(maxBytes, bytes);
      pieces.push(next.value);
    }
  } finally {
    // Ends the consumer behind it; nothing is left to be ended after the last piece.
    await within(reader.cancel(), IDLE_MS);
  }
}

function tooLarge(maxBytes: number, bytes: number): Error {
  return new Error(`expected at most ${maxBytes} bytes, got ${bytes}`);
}

async function storesOf(nc: NatsConnection): Promise<Objm> {
  const { Objm } = await import("./object-store.ts");
  return new Objm(nc);
}

/** The bucket; null when there is none. */
async function existing(nc: NatsConnection): Promise<ObjectStore | null> {
  return (await storesOf(nc)).open(ARTIFACTS_BUCKET).catch(nullIfMissing);
}

async function artifacts(nc: NatsConnection): Promise<ObjectStore> {
  return (await existing(nc)) ?? (await storesOf(nc)).create(ARTIFACTS_BUCKET);
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Error && error.message === "object store not found") return null;
  throw error;
}

/** The store writes digests as `SHA-256=` and base64url (NATS ADR-20), with or without padding. */
function sameDigest(stored: string, sha: Buffer): boolean {
  return stored.replace(/=+$/, "") === `SHA-256=${sha.toString("base64url")}`;
}
