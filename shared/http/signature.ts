import { createHash, createHmac } from "node:crypto";

/** What is signed of a request. */
export interface SignableRequest {
  readonly method: string;
  /** As the caller asks it: a server behind a proxy gives its public name here, not its own. */
  readonly url: URL;
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/** The version of our profile of RFC 9421 (docs/hmac.md). */
export const TAG = "sluice-hmac-1";
/** The algorithm's name (RFC 9421 §6.2.2). */
export const ALGORITHM = "hmac-sha256";
/** What a signature covers, all of it, in the order in which we write it. */
export const COMPONENTS = ["@method", "@authority", "@path", "@query", "content-digest"] as const;

/** The length of the hash's output: a shorter key would weaken it (RFC 2104 §3). */
const SECRET_BYTES = 32;
/** Keys are found by it. */
export const KEY_ID = /^[\w.:/@+=-]{1,128}$/;

/** What is wrong with a key, in words that hold nothing of it. */
export function keyProblem(id: string, secret: Uint8Array): string | undefined {
  if (!KEY_ID.test(id))
    return "expected a key id of 1 to 128 of A-Z, a-z, 0-9 and ._:/@+=- to sign requests with";
  if (secret.byteLength < SECRET_BYTES)
    return `expected a secret of at least ${SECRET_BYTES} bytes to sign requests with, got ${secret.byteLength}`;
  return undefined;
}

/** The SHA-256 digest of a body. */
export function sha256(body: Uint8Array): Buffer {
  return createHash("sha256").update(body).digest();
}

/**
 * What stands for each component (RFC 9421 §2.2). `URL` has normalized the parts: host in lower case, no default port.
 *
 * @param digest the field `Content-Digest` as it is sent
 */
export function componentsOf({ method, url }: SignableRequest, digest: string): Record<Component, string> {
  return {
    "@method": method,
    "@authority": url.host,
    "@path": url.pathname,
    // Without a query it is a question mark alone (RFC 9421 §2.2.7).
    "@query": url.search === "" ? "?" : url.search,
    "content-digest": digest.trim(),
  };
}

/** The name of a component. */
export type Component = (typeof COMPONENTS)[number];

/**
 * The text that is signed (RFC 9421 §2.5).
 *
 * @param values the covered components by their names, in the order in which the parameters name them
 * @param params the inner list of the components with its parameters, serialized
 */
export function signatureBase(
  values: readonly (readonly [name: string, value: string])[],
  params: string,
): string {
  return [...values, ["@signature-params", params]].map(([name, value]) => `"${name}": ${value}`).join("\n");
}

/** The signature of a text. */
export function macOf(secret: Uint8Array, base: string): Buffer {
  return createHmac("sha256", secret).update(base).digest();
}
