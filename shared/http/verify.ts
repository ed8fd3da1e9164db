import { timingSafeEqual } from "node:crypto";
import { type InnerList, type Item, parseDictionary, serializeInnerList } from "structured-headers";
import * as z from "../zod.ts";
import {
  ALGORITHM,
  COMPONENTS,
  type Component,
  componentsOf,
  KEY_ID,
  macOf,
  type SignableRequest,
  sha256,
  signatureBase,
  TAG,
} from "./signature.ts";

/** A request as it came in. */
export interface SignedRequest extends SignableRequest {
  readonly headers: Headers;
}

/** What knows which nonces were used: for all instances of a verifier one and the same. */
export interface NonceMemory {
  /**
   * Remembers a nonce of a key, in one step that nobody can come between.
   *
   * @param untilMs up to and including this time, in milliseconds since 1970; after it the request is stale anyway
   * @returns whether it was new
   */
  remember(keyId: string, nonce: string, untilMs: number): Promise<boolean>;
}

interface VerifyOptions {
  /** The secret of a key that is trusted, if it is; two ids at a time let a key be replaced. */
  readonly keyOf: (id: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;
  readonly nonces: NonceMemory;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Whose request it is. */
export interface Verified {
  readonly keyId: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly nonce: string;
}

/**
 * Why a request is not believed:
 *
 * - `missing`: it has no signature of ours
 * - `malformed`: what it has is not of our profile
 * - `stale`: it was made more than five minutes ago, or ahead
 * - `unknown_key`: nobody has this key
 * - `mismatch`: key, or anything that is signed, differ
 * - `digest`: the body is another
 * - `replayed`: it came before
 */
export type SignatureProblem =
  | "missing"
  | "malformed"
  | "stale"
  | "unknown_key"
  | "mismatch"
  | "digest"
  | "replayed";

/** A request that is not believed. Tell the caller no more than that: which part was right is the caller's to know. */
export class SignatureError extends Error {
  override readonly name = "SignatureError";
  readonly problem: SignatureProblem;

  constructor(problem: SignatureProblem, message: string) {
    super(`signature of the request: ${message}`);
    this.problem = problem;
  }
}

/** Characters of each of the three headers; they are read before anything is known of who sent them. */
export const MAX_SIGNATURE_HEADER = 1_024;
/** How far the clocks of both sides may differ, and how long a request may be on its way. */
export const MAX_SKEW_MS = 5 * 60_000;

const params = z.whenUsed(() =>
  z.strictObject({
    created: z.int().check(z.nonnegative()),
    nonce: z.string().check(z.regex(/^[\w-]{22,128}$/)),
    keyid: z.string().check(z.regex(KEY_ID)),
    alg: z.literal(ALGORITHM),
    tag: z.literal(TAG),
  }),
);

/**
 * Finds out whose request it is (docs/hmac.md). A nonce is remembered only of a request that is right in all else, so
 * strangers cannot fill the memory.
 *
 * @throws SignatureError
 */
export async function verifyRequest(request: SignedRequest, options: VerifyOptions): Promise<Verified> {
  const { covered, mac } = readSignature(request.headers);
  const { keyid: keyId, created, nonce } = readParams(covered);
  const names = readComponents(covered);
  if (Math.abs((options.now ?? Date.now)() - created * 1_000) > MAX_SKEW_MS)
    throw new SignatureError("stale", "expected one made within five minutes; are both clocks right?");
  const secret = await options.keyOf(keyId);
  if (secret === undefined) throw new SignatureError("unknown_key", "its key is not known");

  const digest = header(request.headers, "content-digest");
  const components = componentsOf(request, digest);
  const values = names.map((name) => [name, components[name]] as const);
  if (!timingSafeEqual(mac, macOf(secret, signatureBase(values, serializeInnerList(covered)))))
    throw new SignatureError("mismatch", "the secret, or what is signed, differs");
  if (!readDigest(digest).equals(sha256(request.body)))
    throw new SignatureError("digest", "the body is not the one that was signed");
  if (!(await options.nonces.remember(keyId, nonce, created * 1_000 + MAX_SKEW_MS)))
    throw new SignatureError("replayed", "its nonce was used before");
  return { keyId, created, nonce };
}

function header(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null) throw new SignatureError("missing", `expected the header ${name}`);
  if (value.length > MAX_SIGNATURE_HEADER)
    throw new SignatureError("malformed", `expected ${name} of at most ${MAX_SIGNATURE_HEADER} characters`);
  return value;
}

function dictionary(headers: Headers, name: string): Map<string, Item | InnerList> {
  const text = header(headers, name);
  try {
    return parseDictionary(text);
  } catch {
    // The parser's message quotes the text.
    throw new SignatureError("malformed", `expected ${name} to be a dictionary (RFC 9651 §3.2)`);
  }
}

/** Others may have signed the message too: ours is the one with our tag (RFC 9421 §7.2.7). */
function readSignature(headers: Headers): { covered: InnerList; mac: Uint8Array } {
  const inputs = [...dictionary(headers, "signature-input")].filter(([, [, of]]) => of.get("tag") === TAG);
  const [input, second] = inputs;
  if (input === undefined) throw new SignatureError("missing", `expected one with the tag ${TAG}`);
  if (second !== undefined) throw new SignatureError("malformed", `expected only one with the tag ${TAG}`);
  const [label, covered] = input;
  if (!isInnerList(covered)) throw new SignatureError("malformed", "expected a list of components");
  const mac = bytesOf(dictionary(headers, "signature").get(label));
  if (mac === undefined) throw new SignatureError("malformed", "expected 32 bytes under the same label");
  return { covered, mac };
}

function readParams([, given]: InnerList) {
  const parsed = params().safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const what = issue?.code === "unrecognized_keys" ? "no further one" : `a sound ${issue?.path.join(".")}`;
  throw new SignatureError("malformed", `its parameters: expected ${what}`);
}

/** All components and no others, each once, without parameters: `"@method";req` is another message's method. */
function readComponents([items]: InnerList): Component[] {
  const names = COMPONENTS.filter((name) => items.some(([item]) => item === name));
  if (
    names.length !== items.length ||
    names.length !== COMPONENTS.length ||
    items.some(([, of]) => of.size > 0)
  )
    throw new SignatureError("malformed", `expected it to cover ${COMPONENTS.join(", ")}`);
  return names.toSorted((one, other) => place(items, one) - place(items, other));
}

const place = (items: readonly Item[], name: Component) => items.findIndex(([item]) => item === name);

/** Digests by other algorithms may stand beside it, as the field is signed as a whole (RFC 9530 §2). */
function readDigest(text: string): Uint8Array & { equals(other: Uint8Array): boolean } {
  const digest = bytesOf(
    dictionary(new Headers({ "content-digest": text }), "content-digest").get("sha-256"),
  );
  if (digest === undefined)
    throw new SignatureError("malformed", "expected content-digest with 32 bytes of sha-256");
  return Buffer.from(digest);
}

/** A SHA-256 value, if an entry is one. */
function bytesOf(entry: Item | InnerList | undefined): Uint8Array | undefined {
  const value: unknown = entry?.[0];
  return value instanceof ArrayBuffer && value.byteLength === 32 ? new Uint8Array(value) : undefined;
}

function isInnerList(entry: Item | InnerList): entry is InnerList {
  return Array.isArray(entry[0]);
}
