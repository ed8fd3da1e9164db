import { readSecret } from "./secrets.ts";

/** How soon a secret is read anew once more because it is refused: sooner, what was read the last time is gone on with. */
export const REREAD_MS = 10_000;

/** The last time that a secret was read anew. */
interface Reread {
  /** In milliseconds since 1970. */
  readonly at: number;
  /** Done whichever way it went. Nothing of the secret is kept here. */
  readonly done: Promise<void>;
}

/**
 * A {@link readSecret} that whoever is refused may ask for a fresh text as often as that happens: of each secret Secrets
 * Manager is asked once in {@link REREAD_MS} for it. Within that time there is the text that this has brought, also to
 * those who ask while it is on its way; if it has failed, the one that was kept before.
 */
export function sparingSecrets(now: () => number = Date.now): typeof readSecret {
  const rereads = new Map<string, Reread>();
  return async (secret, { fresh = false } = {}) => {
    const last = rereads.get(secret);
    if (fresh && (last === undefined || now() - last.at >= REREAD_MS)) {
      const text = readSecret(secret, { fresh });
      const done = text.then(
        () => {},
        () => {},
      );
      rereads.set(secret, { at: now(), done });
      return await text;
    }
    if (fresh) await last?.done;
    return await readSecret(secret);
  };
}
