import type { NatsConnection } from "@nats-io/transport-node";
import { within } from "../shared/nats/deadline.ts";
import { ARTIFACTS_BUCKET, wasDeleted } from "../shared/nats/index.ts";
import type { ArtifactRef } from "../shared/wire/index.ts";

/** How long it may take to hear of an artifact, in milliseconds: whoever may not read the bucket hears nothing. */
const WITHIN_MS = 2_000;

/** Whether an artifact was erased, as far as the bucket can be read: it keeps a note of what it has held. */
export async function isErased(
  nc: NatsConnection,
  { bucket, key }: Pick<ArtifactRef, "bucket" | "key">,
): Promise<boolean> {
  if (bucket !== ARTIFACTS_BUCKET) return false;
  return (
    (await within(
      wasDeleted(nc, key).catch(() => false),
      WITHIN_MS,
    )) ?? false
  );
}
