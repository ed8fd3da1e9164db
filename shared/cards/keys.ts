import type { DidKey } from "./did-key.ts";
import { KeyError, SigningKey } from "./signing-key.ts";
import { readSuccession, type Succession, stateSuccession } from "./succession.ts";

/** Where a deployment's signing key is kept, one at a time. */
export interface KeyVault {
  /** What it is called in an error. */
  readonly label: string;
  /** The current key's text; `undefined` while there is none. */
  read(): Promise<string | undefined>;
  /** Stores the first key. @returns false if there is one already */
  create(text: string): Promise<boolean>;
  /** Stores a key in another's place. @returns false if that is not the current one any more */
  replace(old: DidKey, text: string): Promise<boolean>;
}

/** The current key, if there is one. @throws KeyError `key_unreadable`; whatever the vault throws */
export async function currentKey(vault: KeyVault): Promise<SigningKey | undefined> {
  const text = await vault.read();
  return text === undefined ? undefined : SigningKey.open(text, vault.label);
}

/**
 * The current key, which is made if there is none: of several that do so at once, one's is kept.
 *
 * @throws KeyError `key_unreadable`, `key_missing`; whatever the vault throws
 */
export async function ensureKey(vault: KeyVault, now: Date): Promise<SigningKey> {
  const known = await currentKey(vault);
  if (known !== undefined) return known;
  const made = SigningKey.make(now);
  if (await vault.create(made.sealed())) return made;
  return (await currentKey(vault)) ?? missing(vault, "somebody has made one and taken it away");
}

/**
 * Puts a new key in the current one's place. The old one states that the new one follows it, and is forgotten.
 *
 * @throws KeyError `key_missing` when there is none, `key_changed` when somebody else has just rotated it; as
 *   {@link currentKey}
 */
export async function rotateKey(
  vault: KeyVault,
  now: Date,
): Promise<{ readonly old: SigningKey; readonly key: SigningKey }> {
  const old = (await currentKey(vault)) ?? missing(vault, "it is made when the first card is signed");
  const fresh = SigningKey.make(now);
  const key = fresh.after([...old.successions, await stateSuccession(old, fresh.did, now)]);
  if (await vault.replace(old.did, key.sealed())) return { old, key };
  throw new KeyError("key_changed", `${vault.label}: somebody else has just rotated the signing key`);
}

/** How a key came to be its predecessors' successor, the oldest first. */
export async function chainOf({ successions }: SigningKey): Promise<readonly Succession[]> {
  const read = await Promise.all(successions.map(readSuccession));
  return read.filter((of) => of !== undefined);
}

function missing({ label }: KeyVault, why: string): never {
  throw new KeyError("key_missing", `${label} holds no signing key: ${why}`);
}
