import * as z from "../zod.ts";
import { CARD_TTL_MS } from "./bucket-facts.ts";
import { encodeRecord } from "./fit.ts";

const dated = z.whenUsed(() => z.looseObject({ expiresAt: z.string(), publishedAt: z.string() }));

/**
 * A record of ours as it is put once more: the same with the times of now, and as long.
 *
 * @param now milliseconds since 1970
 * @throws z.core.$ZodError, SyntaxError for what is no record of ours
 */
export function renewedRecord(bytes: Uint8Array, now: number): Uint8Array {
  const record = dated().parse(JSON.parse(new TextDecoder().decode(bytes)));
  const at = (ms: number) => new Date(ms).toISOString();
  return encodeRecord({ ...record, expiresAt: at(now + CARD_TTL_MS), publishedAt: at(now) });
}
