import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import * as z from "../zod.ts";
import { type DidKey, didOf } from "./did-key.ts";
import { type Identity, MAX_SUCCESSION_LENGTH, MAX_SUCCESSIONS } from "./identity.ts";

/** Why a signing key cannot be used. */
export type KeyErrorCode = "key_unreadable" | "key_missing" | "key_changed";

/** The deployment's signing key cannot be used. The message holds nothing of it. */
export class KeyError extends Error {
  override readonly name = "KeyError";
  readonly code: KeyErrorCode;

  constructor(code: KeyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** 32 bytes in base64url without padding (RFC 8037 §2). */
const bytes32 = z.string().check(z.regex(/^[A-Za-z0-9_-]{43}$/));

/** A signing key as it is kept. */
const kept = z.whenUsed(() =>
  z.strictObject({
    version: z.literal(1),
    jwk: z.strictObject({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), d: bytes32, x: bytes32 }),
    since: z.iso.datetime(),
    successions: z
      .array(z.string().check(z.maxLength(MAX_SUCCESSION_LENGTH)))
      .check(z.maxLength(MAX_SUCCESSIONS)),
  }),
);

/**
 * The key by which a deployment signs its cards: Ed25519 (RFC 8032). What is private of it is shown by no way of printing
 * an object; {@link SigningKey.sealed} alone tells it.
 */
export class SigningKey implements Identity {
  readonly did: DidKey;
  readonly since: string;
  readonly successions: readonly string[];
  readonly #key: KeyObject;

  private constructor(key: KeyObject, since: string, successions: readonly string[]) {
    this.#key = key;
    this.did = didOf({ kty: "OKP", crv: "Ed25519", x: publicPart(key) });
    this.since = since;
    this.successions = successions;
  }

  /** A new key, of now. */
  static make(now: Date): SigningKey {
    return new SigningKey(generateKeyPairSync("ed25519").privateKey, now.toISOString(), []);
  }

  /** The same key, told to succeed others; the oldest statements beyond {@link MAX_SUCCESSIONS} are left out. */
  after(successions: readonly string[]): SigningKey {
    return new SigningKey(this.#key, this.since, successions.slice(-MAX_SUCCESSIONS));
  }

  /**
   * Reads what {@link sealed} gave.
   *
   * @param source what to call it in an error
   * @throws KeyError `key_unreadable`
   */
  static open(text: string, source: string): SigningKey {
    const parsed = kept().safeParse(jsonOf(text));
    if (!parsed.success) throw unreadable(source);
    const { jwk, since, successions } = parsed.data;
    try {
      const key = createPrivateKey({ key: jwk, format: "jwk" });
      if (publicPart(key) !== jwk.x) throw new Error("its public part is another's");
      return new SigningKey(key, since, successions);
    } catch {
      throw unreadable(source); // the cause might quote it
    }
  }

  /** The private key, for signing alone. */
  get key(): KeyObject {
    return this.#key;
  }

  /** The key as it is kept: a secret. */
  sealed(): string {
    const { d = "", x = "" } = this.#key.export({ format: "jwk" });
    const { since, successions } = this;
    return JSON.stringify({ version: 1, jwk: { kty: "OKP", crv: "Ed25519", d, x }, since, successions });
  }
}

function publicPart(key: KeyObject): string {
  return createPublicKey(key).export({ format: "jwk" }).x ?? "";
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreadable(source: string): KeyError {
  return new KeyError(
    "key_unreadable",
    `the signing key in ${source}: expected what Sluice keeps there, JSON with an Ed25519 key; put back what was there before`,
  );
}
