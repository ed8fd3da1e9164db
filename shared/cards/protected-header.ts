import * as z from "../zod.ts";
import type { DetachedJws } from "./jws.ts";

/** What a signature may have: ours have 200 and 86 characters. */
const MAX_PROTECTED_LENGTH = 4_096;
const MAX_SIGNATURE_LENGTH = 1_024;
const MAX_KID_LENGTH = 512;

const base64url = z.regex(/^[A-Za-z0-9_-]+$/);

/** A signature as it stands on a card (A2A 1.0 §4.4.7); what its unprotected header says is not heeded. */
const entry = z.whenUsed(() =>
  z.object({
    protected: z.string().check(z.maxLength(MAX_PROTECTED_LENGTH), base64url),
    signature: z.string().check(z.maxLength(MAX_SIGNATURE_LENGTH), base64url),
  }),
);

/** What a protected header must hold (A2A 1.0 §8.4.2). */
const header = z.whenUsed(() =>
  z.looseObject({
    alg: z.string(),
    kid: z.string().check(z.minLength(1), z.maxLength(MAX_KID_LENGTH)),
    typ: z.optional(z.string()),
  }),
);

/** A signature whose header could be read. */
export interface Signature extends DetachedJws {
  readonly alg: string;
  readonly kid: string;
  readonly typ?: string | undefined;
}

/**
 * Reads a signature.
 *
 * @returns `undefined` when it is none, or asks for what is not known here: `crit` and `b64` change what is signed, and
 *   who does not know them must refuse them (RFC 7515 §4.1.11, RFC 7797 §6)
 */
export function readSignature(value: unknown): Signature | undefined {
  const read = entry().safeParse(value);
  if (!read.success) return undefined;
  const told = header().safeParse(decoded(read.data.protected));
  if (!told.success || "crit" in told.data || "b64" in told.data) return undefined;
  const { alg, kid, typ } = told.data;
  return { ...read.data, alg, kid, typ };
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "base64url")));
  } catch {
    return undefined;
  }
}
