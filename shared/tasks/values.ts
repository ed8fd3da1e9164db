import { createHash } from "node:crypto";
import type { S3Client } from "@aws-sdk/client-s3";
import { insist, type Patience } from "./insist.ts";
import type { Kept, ValueRef } from "./items.ts";

/** Text of up to this many bytes stays in its item; larger text goes to the bucket. */
export const MAX_INLINE_BYTES = 32 * 1024;

/** Values that items are too small for: objects in the bucket under `values/<taskId>/<SHA-256>`, written once. */
export interface Values {
  put(taskId: string, bytes: Uint8Array): Promise<ValueRef>;
  /** Where {@link Values.put} puts the bytes of this SHA-256 (lower hex). */
  ref(taskId: string, sha256: string, bytes: number): ValueRef;
  /** @throws ValueGone when the object is no longer there */
  get(ref: ValueRef): Promise<Uint8Array>;
  /** Keeps text in place when it is small, otherwise in the bucket. */
  keep(taskId: string, text: string): Promise<Kept>;
  /** The text of what {@link Values.keep} made. */
  text(kept: Kept): Promise<string>;
}

/** A value's object is no longer in the bucket. */
export class ValueGone extends Error {
  override readonly name = "ValueGone";
  constructor(key: string, options?: ErrorOptions) {
    super(`the object ${key} is no longer in the bucket`, options);
  }
}

/**
 * Values in an S3 bucket. The client is made on first use: most tasks need none, and it is the heaviest part of a
 * cold start.
 */
export function s3Values(options: { bucket: string; client: () => Promise<S3Client> }): Values {
  let made: Promise<S3Client> | undefined;
  const client = () => {
    made ??= options.client();
    return made;
  };
  const values: Values = {
    async put(taskId, bytes) {
      const { PutObjectCommand } = await import("./s3.ts");
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const ref = values.ref(taskId, sha256, bytes.byteLength);
      const s3 = await client();
      await s3.send(
        new PutObjectCommand({
          Bucket: options.bucket,
          Key: ref.key,
          Body: bytes,
          ContentLength: bytes.byteLength,
        }),
      );
      return ref;
    },
    ref: (taskId, sha256, bytes) => ({ key: `values/${taskId}/${sha256}`, bytes }),
    async get(ref) {
      const { GetObjectCommand, NoSuchKey } = await import("./s3.ts");
      const s3 = await client();
      try {
        const got = await s3.send(new GetObjectCommand({ Bucket: options.bucket, Key: ref.key }));
        return (await got.Body?.transformToByteArray()) ?? new Uint8Array();
      } catch (error) {
        if (error instanceof NoSuchKey) throw new ValueGone(ref.key, { cause: error });
        throw error;
      }
    },
    async keep(taskId, text) {
      if (Buffer.byteLength(text) <= MAX_INLINE_BYTES) return { text };
      return { ref: await values.put(taskId, Buffer.from(text)) };
    },
    async text(kept) {
      return "text" in kept ? kept.text : Buffer.from(await values.get(kept.ref)).toString("utf8");
    },
  };
  return values;
}

/** The same values, for somebody who rather waits for the bucket than gives up. */
export function patient(values: Values, patience: Patience): Values {
  const keepOn = <T>(attempt: () => Promise<T>) =>
    insist(attempt, patience, (error) => error instanceof ValueGone);
  return {
    put: (taskId, bytes) => keepOn(() => values.put(taskId, bytes)),
    ref: values.ref,
    get: (ref) => keepOn(() => values.get(ref)),
    keep: (taskId, text) => keepOn(() => values.keep(taskId, text)),
    text: (kept) => keepOn(() => values.text(kept)),
  };
}
