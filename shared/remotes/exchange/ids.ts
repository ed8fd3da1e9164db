import { MAX_REMOTE_ID } from "./limits.ts";

/**
 * Whether an id can be read back from an agent's answer: 1 to {@link MAX_REMOTE_ID} characters, none of them a control or
 * otherwise invisible one. An agent says again what a conversation is called (A2A 1.0 §3.4.1), so nothing else is sent either.
 */
export function isRemoteId(id: string): boolean {
  return id.length > 0 && id.length <= MAX_REMOTE_ID && !/\p{C}/u.test(id);
}
