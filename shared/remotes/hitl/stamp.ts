import type { CardExtensions } from "../extensions.ts";
import type { Holding } from "./mode.ts";

/** What a card must declare for a value to be asked of its agent. */
type Asked = Pick<CardExtensions, "cost" | "confidence" | "worldstateDelta">;

/**
 * What a request's metadata says of the extensions (docs/hitl.md): how it was held before it was sent, how far its skill
 * reaches, and which values are to come back, those alone that the card declares.
 */
export function stampOf(
  skill: string,
  { mode, radius, vetoTtlMs }: Holding,
  card: Asked | undefined,
): Readonly<Record<string, string | number>> {
  return {
    ...(radius !== undefined && { "x-blast-radius": radius }),
    "x-hitl-mode": mode,
    ...(vetoTtlMs !== undefined && { "x-hitl-veto-ttl-ms": vetoTtlMs }),
    ...(card?.cost === true && { "x-cost-skill": skill }),
    ...(card?.confidence === true && { "x-confidence-skill": skill }),
    ...(card?.worldstateDelta === true && { "x-effect-domain-skill": skill }),
  };
}
