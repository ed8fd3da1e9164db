import { randomBytes } from "node:crypto";
import {
  type InnerList,
  serializeBareItem,
  serializeDictionary,
  serializeInnerList,
} from "structured-headers";
import {
  ALGORITHM,
  COMPONENTS,
  componentsOf,
  keyProblem,
  macOf,
  type SignableRequest,
  sha256,
  signatureBase,
  TAG,
} from "./signature.ts";

/** A secret that signer and verifier share. */
export interface SigningKey {
  readonly id: string;
  /** At least 32 bytes. */
  readonly secret: Uint8Array;
}

interface SignOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** A text that was never used before with this key: 22 to 128 of A-Z, a-z, 0-9, - and _. */
  readonly nonce?: () => string;
}

/** The name of our signature among others that a message may carry (RFC 9421 §4.1). */
const LABEL = "sluice";

/** 128 bits, which do not meet twice. */
const randomNonce = () => randomBytes(16).toString("base64url");

/**
 * Signs a request (docs/hmac.md): RFC 9421 with `hmac-sha256` over method, host, path, query and the digest of the body
 * (RFC 9530).
 *
 * @returns the headers `content-digest`, `signature-input` and `signature`. They hold for this request alone, once, and for
 *   five minutes
 * @throws Error when the key is unfit; it holds nothing of it
 */
export function signRequest(
  request: SignableRequest,
  key: SigningKey,
  { now = Date.now, nonce = randomNonce }: SignOptions = {},
): Record<string, string> {
  const problem = keyProblem(key.id, key.secret);
  if (problem !== undefined) throw new Error(problem);
  const digest = `sha-256=${serializeBareItem(sha256(request.body))}`;
  const covered: InnerList = [
    COMPONENTS.map((name) => [name, new Map()]),
    new Map<string, string | number>([
      ["created", Math.floor(now() / 1_000)],
      ["nonce", nonce()],
      ["keyid", key.id],
      ["alg", ALGORITHM],
      ["tag", TAG],
    ]),
  ];
  const values = Object.entries(componentsOf(request, digest));
  const mac = macOf(key.secret, signatureBase(values, serializeInnerList(covered)));
  return {
    "content-digest": digest,
    "signature-input": serializeDictionary(new Map([[LABEL, covered]])),
    signature: serializeDictionary(new Map([[LABEL, [mac, new Map()]]])),
  };
}
