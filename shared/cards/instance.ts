import { createHash } from "node:crypto";
import * as z from "../zod.ts";
import { isClean } from "./sanitize.ts";

/**
 * As what a stack signs its cards and heartbeats: by its own name, which all of its functions know and no other stack has,
 * or by a digest of it where peers would blank a part. It stands in a subject as well.
 *
 * @param stackName of letters, digits and `-`, at most 128 (CloudFormation API reference, CreateStack)
 */
export function instanceId(stackName: string): string {
  if (isClean(stackName)) return stackName;
  return `sluice-${createHash("sha256").update(stackName).digest("hex").slice(0, 16)}`;
}

const signed = z.whenUsed(() => z.looseObject({ instanceId: z.string() }));

/** Whether a record is there, and says that it is of this stack. */
export function isOf<T extends { readonly bytes: Uint8Array }>(
  stored: T | undefined,
  instance: string,
): stored is T {
  return stored !== undefined && instanceOf(stored.bytes) === instance;
}

/** Whose a record is, as it says; nothing of what is no record. */
export function instanceOf(bytes: Uint8Array): string | undefined {
  try {
    return signed().safeParse(JSON.parse(new TextDecoder().decode(bytes))).data?.instanceId;
  } catch {
    return undefined;
  }
}
