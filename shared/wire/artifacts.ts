import * as z from "../zod.ts";
import { artifactId, taskId } from "./ids.ts";

const BUCKET = "a2a-artifacts";
const MAX_NAME = 128;

/** Where an artifact's bytes are, and what they must be (docs/wire.md §8). */
export interface ArtifactRef {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  /** `sha256:` and 64 hex digits. */
  readonly digest: string;
  readonly sizeBytes: number;
  readonly uri: string;
  readonly bucket: string;
  readonly key: string;
  /** RFC 3339. */
  readonly expiresAt?: string;
}

const described = z.whenUsed(() =>
  z.object({
    id: artifactId(),
    name: z.string(),
    mediaType: z.string().check(z.refine(isMediaType, "expected a media type such as text/plain")),
    digest: z.string().check(z.regex(/^sha256:[0-9a-f]{64}$/, "expected sha256: and 64 hex digits")),
    sizeBytes: z.int().check(z.nonnegative()),
    /** Of an artifact that grows: each version is an object of its own, so that what was published before stays true. */
    version: z.optional(z.int().check(z.positive())),
  }),
);

/**
 * The reference under which an artifact is published: its place in the object store follows from the task, its id,
 * its name and, from the second on, its version.
 *
 * @throws $ZodError when a field is none that peers would accept, naming it
 */
export function artifactRef(task: string, artifact: z.infer<ReturnType<typeof described>>): ArtifactRef {
  const { id, name, mediaType, digest, sizeBytes, version = 1 } = described().parse(artifact);
  const folder = `tasks/${taskId().parse(task)}/${id}${version === 1 ? "" : `/${version}`}`;
  const key = `${folder}/${safeName(name)}`;
  return { id, name, mediaType, digest, sizeBytes, uri: uriOf(BUCKET, key), bucket: BUCKET, key };
}

/** A file name as object keys may have it: of A-Z, a-z, 0-9, `.`, `_` and `-`, never empty, never leading out. */
export function safeName(name: string): string {
  const base = name.slice(name.lastIndexOf("/") + 1);
  const safe = base
    .replace(/[^A-Za-z0-9._-]/gu, "-")
    .replace(/\.{2,}/g, ".")
    .replace(/^[.-]+/, "")
    .slice(0, MAX_NAME)
    .replace(/[.-]+$/, "");
  return safe || "artifact";
}

function uriOf(bucket: string, key: string): string {
  return `nats-object://${bucket}/${key}`;
}

function isMediaType(text: string): boolean {
  // To import node:util loads all that it has, worker threads and all, at each start (Node.js: process.getBuiltinModule).
  const { MIMEType } = process.getBuiltinModule("node:util");
  try {
    return new MIMEType(text).essence !== "";
  } catch {
    return false;
  }
}

/** A reference as events of any executor carry it. What it must have is what is needed to fetch and to check. */
export const readableArtifactRef = z.whenUsed(
  (): z.ZodMiniType<ArtifactRef> =>
    z.pipe(
      z.object({
        id: z.string().check(z.minLength(1)),
        name: z.nullish(z.string()),
        mediaType: z.nullish(z.string()),
        digest: z.string(),
        sizeBytes: z.int().check(z.nonnegative()),
        uri: z.nullish(z.string()),
        bucket: z.string(),
        key: z.string(),
        expiresAt: z.nullish(z.string()),
      }),
      z.transform(({ expiresAt, ...ref }) => ({
        ...ref,
        name: ref.name || ref.id,
        mediaType: ref.mediaType || "application/octet-stream",
        uri: ref.uri || uriOf(ref.bucket, ref.key),
        ...(expiresAt && { expiresAt }),
      })),
    ),
);
