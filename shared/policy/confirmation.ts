import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import * as z from "zod";

/** For how long a confirmation token is good, in milliseconds. */
export const TOKEN_LIFE_MS = 10 * 60_000;

/** Why a confirmation token is refused. */
export type TokenErrorCode =
  | "token_missing"
  | "token_altered"
  | "token_foreign"
  | "token_expired"
  | "token_used";

/** A confirmation token is refused. The message holds nothing of it. */
export class TokenError extends Error {
  override readonly name = "TokenError";
  readonly code: TokenErrorCode;

  constructor(code: TokenErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a token confirms, and for whom. */
export interface Confirmed {
  /** The agent's runtime id: whose policy is changed, or who is asked. */
  readonly agent: string;
  /** Who was shown the token. */
  readonly operator: string;
  /** The id of what is confirmed: of a change of a policy, or of the message that a task is asked for with. */
  readonly change: string;
  /** Of all that is done: {@link digestOf}. */
  readonly digest: string;
}

const claims = z.strictObject({
  agent: z.string(),
  operator: z.string(),
  change: z.string(),
  digest: z.string(),
  /** In milliseconds since 1970. */
  expires: z.int(),
});

/** SHA-256 of a value's JSON with its keys in order, as hex digits. */
export function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, inOrder)).digest("hex");
}

function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** A part of a token: unpadded base64url, of which only one text stands for the same bytes. */
const PART = /^[A-Za-z0-9_-]+$/;

/**
 * A token: what it confirms, and an HMAC-SHA256 over that (RFC 2104).
 *
 * @param now in milliseconds since 1970
 */
export function signToken(key: Uint8Array, of: Confirmed, now: number): string {
  const { agent, operator, change, digest } = of;
  const text = JSON.stringify({ agent, operator, change, digest, expires: now + TOKEN_LIFE_MS });
  const payload = Buffer.from(text).toString("base64url");
  return `${payload}.${macOf(key, payload)}`;
}

function macOf(key: Uint8Array, payload: string): string {
  return createHmac("sha256", key).update(payload).digest("base64url");
}

/**
 * What a token says, of whatever it is: signed with the key, and perhaps expired.
 *
 * @throws TokenError `token_altered`
 */
export function readToken(key: Uint8Array, token: string): z.infer<typeof claims> {
  const altered = new TokenError("token_altered", "the token is not as it was shown");
  const [payload = "", mac = "", ...more] = token.split(".");
  if (more.length > 0 || !PART.test(payload) || !PART.test(mac)) throw altered;
  const [given, expected] = [Buffer.from(mac), Buffer.from(macOf(key, payload))];
  // As text: base64url has several texts for the same bytes, and only one was shown.
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw altered;
  return claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString()));
}

/**
 * Looks whether a token confirms this change. That it is used only once is up to whoever makes the change.
 *
 * @throws TokenError
 */
export function verifyToken(key: Uint8Array, token: string, of: Confirmed, now: number): void {
  const told = readToken(key, token);
  for (const [field, what] of [
    ["agent", "another agent"],
    ["operator", "another operator"],
    ["change", "another change"],
  ] as const)
    if (told[field] !== of[field]) throw new TokenError("token_foreign", `the token is for ${what}`);
  if (now >= told.expires)
    throw new TokenError("token_expired", "the token was good for ten minutes; plan anew");
  if (told.digest !== of.digest)
    throw new TokenError("token_altered", "what it is for is not what was shown with the token");
}
