import { createHash } from "node:crypto";
import { type ObjectStore, Objm } from "@nats-io/obj";
import type { NatsConnection } from "@nats-io/transport-node";

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
  const existing = await bucket.info(key);
  if (existing !== null && !existing.deleted && sameDigest(existing.digest, sha)) return;
  await bucket.putBlob({ name: key, metadata: { media_type: mediaType } }, bytes);
}

/**
 * Reads an artifact's bytes.
 *
 * @returns null when the bucket, or the name in it, does not exist
 * @throws Error when what is stored is incomplete or not what its digest says
 */
export async function getObject(nc: NatsConnection, key: string): Promise<Uint8Array | null> {
  const bucket = await new Objm(nc).open(ARTIFACTS_BUCKET).catch(nullIfMissing);
  const bytes = bucket === null ? null : await bucket.getBlob(key);
  return bytes;
}

async function artifacts(nc: NatsConnection): Promise<ObjectStore> {
  const manager = new Objm(nc);
  const existing = await manager.open(ARTIFACTS_BUCKET).catch(nullIfMissing);
  return existing ?? manager.create(ARTIFACTS_BUCKET);
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Error && error.message === "object store not found") return null;
  throw error;
}

/** The store writes digests as `SHA-256=` and base64url (NATS ADR-20), with or without padding. */
function sameDigest(stored: string, sha: Buffer): boolean {
  return stored.replace(/=+$/, "") === `SHA-256=${sha.toString("base64url")}`;
}
