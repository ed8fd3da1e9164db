import * as z from "../zod.ts";
import type { DidKey } from "./did-key.ts";
import { isMembers, type Members } from "./presence.ts";

/** The extension by which a card tells its deployment's identity (docs/cards-signing.md); ours, and nobody must know it. */
export const IDENTITY_EXTENSION = "urn:sluice:a2a:identity:v1";

/** How many rotations a card can be followed through. */
export const MAX_SUCCESSIONS = 8;
/** The longest statement of a succession; ours have about 500 characters. */
export const MAX_SUCCESSION_LENGTH = 2_048;

/** Who a deployment is. */
export interface Identity {
  readonly did: DidKey;
  /** Since when its key is the current one, as RFC 3339. */
  readonly since: string;
  /** How the key came to be its predecessor's successor, the oldest first (succession.ts). */
  readonly successions: readonly string[];
}

const told = z.whenUsed(() =>
  z.object({
    successions: z._default(
      z.array(z.string().check(z.maxLength(MAX_SUCCESSION_LENGTH))).check(z.maxLength(MAX_SUCCESSIONS)),
      [],
    ),
  }),
);

/** The extension as it stands in a card's capabilities. */
export function identityExtension({ did, since, successions }: Identity) {
  return {
    uri: IDENTITY_EXTENSION,
    description: "The key of the deployment, and how it came to be its predecessor's successor",
    params: { did, since, ...(successions.length > 0 && { successions: [...successions] }) },
  };
}

/** The successions that a card tells; none of one that tells no identity, or more than there may be. */
export function successionsIn(card: Members): readonly string[] {
  const { capabilities } = card;
  const extensions: unknown = isMembers(capabilities) ? capabilities.extensions : undefined;
  const found: unknown = Array.isArray(extensions)
    ? extensions.find((of: unknown) => isMembers(of) && of.uri === IDENTITY_EXTENSION)
    : undefined;
  const parsed = told().safeParse(isMembers(found) ? found.params : undefined);
  return parsed.success ? parsed.data.successions : [];
}
