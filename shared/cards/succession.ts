import * as z from "../zod.ts";
import { canonicalJson } from "./canonical.ts";
import { type DidKey, readDidKey } from "./did-key.ts";
import { MAX_SUCCESSION_LENGTH } from "./identity.ts";
import { isSigned, signText } from "./jws.ts";
import { readSignature } from "./protected-header.ts";
import type { SigningKey } from "./signing-key.ts";

/** What a succession is signed as, so that it can be taken for no card, and no card for one. */
export const SUCCESSION_TYPE = "sluice-key-succession";

/** That a key has followed another, said by that other. */
export interface Succession {
  readonly from: DidKey;
  readonly to: DidKey;
  /** When, as RFC 3339. */
  readonly at: string;
}

const statement = z.whenUsed(() =>
  z.strictObject({ from: z.string(), to: z.string(), at: z.iso.datetime() }),
);

/** States that another key follows this one: a JWS in its compact form (RFC 7515 §7.1). */
export async function stateSuccession(old: SigningKey, to: DidKey, at: Date): Promise<string> {
  const text = canonicalJson({ from: old.did, to, at: at.toISOString() });
  const { protected: header, signature } = await signText(text, old, SUCCESSION_TYPE);
  return `${header}.${Buffer.from(text, "utf8").toString("base64url")}.${signature}`;
}

/** Reads a statement; `undefined` for what is none, or is not signed by the key that it says is succeeded. */
export async function readSuccession(jws: string): Promise<Succession | undefined> {
  if (jws.length > MAX_SUCCESSION_LENGTH) return undefined;
  const [header, payload = "", signature, ...more] = jws.split(".");
  const read = readSignature({ protected: header, signature });
  if (read?.typ !== SUCCESSION_TYPE || more.length > 0) return undefined;
  const text = Buffer.from(payload, "base64url").toString("utf8");
  const said = statement().safeParse(jsonOf(text));
  if (!said.success) return undefined;
  const [from, to] = [readDidKey(said.data.from), readDidKey(said.data.to)];
  if (from === undefined || to === undefined || readDidKey(read.kid)?.did !== from.did) return undefined;
  if (read.alg !== from.alg || !(await isSigned(text, read, from))) return undefined;
  return { from: from.did, to: to.did, at: said.data.at };
}

/**
 * Whether statements lead from a key to another, each step said by the key that is left.
 *
 * @param statements the oldest first
 */
export async function leadsTo(from: DidKey, to: DidKey, statements: readonly string[]): Promise<boolean> {
  let at = from;
  for (const jws of statements) {
    const step = await readSuccession(jws);
    if (step?.from === at) at = step.to;
    if (at === to) return true;
  }
  return at === to;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
