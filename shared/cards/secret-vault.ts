import { createHash } from "node:crypto";
import { putSecretOnce } from "../secrets/put-secret.ts";
import { readSecret, SecretError } from "../secrets/secrets.ts";
import type { DidKey } from "./did-key.ts";
import type { KeyVault } from "./keys.ts";

/**
 * A vault in a secret of Secrets Manager, which the stack declares without a value. Each key is a version whose id is
 * made of the key that it follows, so that only one can follow another (Secrets Manager API Reference, PutSecretValue:
 * ClientRequestToken). Secrets Manager keeps the version before the current one (`AWSPREVIOUS`).
 *
 * @param secret its name or ARN
 * @param options.fresh whether each reading asks Secrets Manager; otherwise what was read is used for ten minutes
 */
export function secretVault(secret: string, options: { readonly fresh?: boolean } = {}): KeyVault {
  return {
    label: `the secret ${secret}`,

    async read() {
      try {
        return await readSecret(secret, options);
      } catch (error) {
        // It is declared without a value.
        if (error instanceof SecretError && error.code === "secret_missing") return undefined;
        throw error;
      }
    },

    create: (text) => putSecretOnce(secret, text, versionAfter()),
    replace: (old, text) => putSecretOnce(secret, text, versionAfter(old)),
  };
}

/** A version's id has 32 to 64 characters. */
function versionAfter(old?: DidKey): string {
  return createHash("sha256")
    .update(`sluice signing key after ${old ?? "none"}`)
    .digest("hex");
}
