import { FlattenedSign, flattenedVerify, importJWK } from "jose";
import type { PublicKey } from "./did-key.ts";
import { keyUrl } from "./did-key.ts";
import type { SigningKey } from "./signing-key.ts";

/** A signature beside what it signs (RFC 7515 §7.2.2, Appendix F). */
export interface DetachedJws {
  readonly protected: string;
  readonly signature: string;
}

/**
 * Signs a text.
 *
 * @param typ what is signed (RFC 7515 §4.1.9)
 */
export async function signText(text: string, key: SigningKey, typ: string): Promise<DetachedJws> {
  const jws = await new FlattenedSign(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: "EdDSA", typ, kid: keyUrl(key.did) })
    .sign(key.key);
  return { protected: jws.protected ?? "", signature: jws.signature };
}

/** Whether a signature is one of a text, by this key and the key's own algorithm. */
export async function isSigned(
  text: string,
  { protected: header, signature }: DetachedJws,
  by: PublicKey,
): Promise<boolean> {
  const payload = Buffer.from(text, "utf8").toString("base64url");
  try {
    const key = await importJWK(by.jwk, by.alg);
    await flattenedVerify({ protected: header, payload, signature }, key, { algorithms: [by.alg] });
    return true;
  } catch {
    return false;
  }
}
