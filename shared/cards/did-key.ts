import { createPublicKey, ECDH } from "node:crypto";
import { base58 } from "@scure/base";

/** A public key as its own name (W3C CCG, "The did:key Method"): to know the name is to know the key. */
export type DidKey = `did:key:z${string}`;

/** The algorithms that signatures may be made with (RFC 7518 §3.1, RFC 8037 §3.1); never `none`, never a shared secret. */
export type CardAlgorithm = "EdDSA" | "ES256";

/** A public key as JSON Web Key (RFC 7517, RFC 8037 §2). */
export type PublicJwk =
  | { readonly kty: "OKP"; readonly crv: "Ed25519"; readonly x: string }
  | { readonly kty: "EC"; readonly crv: "P-256"; readonly x: string; readonly y: string };

/** A public key under its name. */
export interface PublicKey {
  readonly did: DidKey;
  readonly alg: CardAlgorithm;
  readonly jwk: PublicJwk;
}

/** The multicodec prefixes `ed25519-pub` (0xed) and `p256-pub` (0x1200), as unsigned varints (Multicodec table). */
const ED25519 = [0xed, 0x01];
const P256 = [0x80, 0x24];
const ED25519_BYTES = 32;
/** A point in compressed form: which of two, and x. */
const P256_BYTES = 33;
const PREFIX = "did:key:z";
/** Longer is neither of the two. */
const MAX_DID_KEY = 64;

/** The name of an Ed25519 or P-256 key. */
export function didOf(jwk: PublicJwk): DidKey {
  const x = Buffer.from(jwk.x, "base64url");
  if (jwk.kty === "OKP") return named([...ED25519, ...x]);
  const isOdd = (Buffer.from(jwk.y, "base64url").at(-1) ?? 0) % 2;
  return named([...P256, 2 + isOdd, ...x]);
}

/** The URL that names a key within its own document: what `kid` holds (DID Core §5.2, "The did:key Method"). */
export function keyUrl(did: DidKey): string {
  return `${did}#${did.slice("did:key:".length)}`;
}

/**
 * The key that a `did:key`, or a URL with it and its fragment, names. Nothing is looked up anywhere.
 *
 * @returns `undefined` for what is no `did:key` of an Ed25519 or P-256 key
 */
export function readDidKey(text: string): PublicKey | undefined {
  const [did = "", fragment, ...more] = text.split("#");
  if (!did.startsWith(PREFIX) || did.length > MAX_DID_KEY || more.length > 0) return undefined;
  if (fragment !== undefined && `did:key:${fragment}` !== did) return undefined;
  const bytes = decoded(did.slice(PREFIX.length));
  const jwk = bytes && (ed25519Of(bytes) ?? p256Of(bytes));
  // A second spelling of the same key would be another name.
  if (jwk === undefined || didOf(jwk) !== did) return undefined;
  return { did: didOf(jwk), alg: jwk.kty === "OKP" ? "EdDSA" : "ES256", jwk };
}

function named(bytes: readonly number[]): DidKey {
  return `${PREFIX}${base58.encode(Uint8Array.from(bytes))}`;
}

function decoded(text: string): Uint8Array | undefined {
  try {
    return base58.decode(text);
  } catch {
    return undefined;
  }
}

function ed25519Of(bytes: Uint8Array): PublicJwk | undefined {
  const key = after(ED25519, bytes, ED25519_BYTES);
  return key && { kty: "OKP", crv: "Ed25519", x: key.toString("base64url") };
}

function p256Of(bytes: Uint8Array): PublicJwk | undefined {
  const key = after(P256, bytes, P256_BYTES);
  if (key === undefined) return undefined;
  try {
    const point = ECDH.convertKey(key, "prime256v1", undefined, undefined, "uncompressed");
    if (typeof point === "string") return undefined;
    // 0x04, x, y (SEC 1 §2.3.3).
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((of) => of.toString("base64url"));
    if (x === undefined || y === undefined) return undefined;
    const jwk: PublicJwk = { kty: "EC", crv: "P-256", x, y };
    createPublicKey({ key: jwk, format: "jwk" });
    return jwk;
  } catch {
    return undefined; // no point of the curve
  }
}

/** What follows a prefix, if it is there and so long. */
function after(prefix: readonly number[], bytes: Uint8Array, length: number): Buffer | undefined {
  if (bytes.length !== prefix.length + length) return undefined;
  if (prefix.some((byte, i) => bytes[i] !== byte)) return undefined;
  return Buffer.from(bytes.subarray(prefix.length));
}
