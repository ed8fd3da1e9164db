import type { AgentPolicy } from "../config/policy.ts";
import type { ArtifactRef } from "../wire/index.ts";

/**
 * Why an agent may not fetch an artifact of a task that it has handed on (docs/policy.md, `delegateMedia`).
 *
 * @param ref.mediaType as the executor says; parameters behind `;` do not count (RFC 9110 §8.3.1)
 * @returns nothing when it may
 */
export function mediaProblem(
  { allowObjectRefs, allowedMimeTypes, maxBytes }: AgentPolicy["delegateMedia"],
  { mediaType, sizeBytes }: Pick<ArtifactRef, "mediaType" | "sizeBytes">,
): string | undefined {
  if (!allowObjectRefs) return "delegateMedia.allowObjectRefs is false";
  if (sizeBytes > maxBytes) return `delegateMedia.maxBytes: ${sizeBytes} bytes are more than ${maxBytes}`;
  const type = mediaType.replace(/\s*;.*$/s, "").toLowerCase();
  const allows = (pattern: string) =>
    pattern.endsWith("/*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
  if (allowedMimeTypes.length === 0 || allowedMimeTypes.some(allows)) return undefined;
  return `delegateMedia.allowedMimeTypes does not name ${JSON.stringify(type.slice(0, 80))}`;
}
