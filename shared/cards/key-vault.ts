import type { Environment } from "../config/env.ts";
import type { KeyVault } from "./keys.ts";

/**
 * Where a function finds the signing key: in the folder that the local host names (`SIGNING_KEY_FOLDER`), else in the
 * secret that the stack does (`SIGNING_KEY_SECRET`).
 *
 * @param options.fresh whether each reading asks where the key is; a secret is kept in memory for ten minutes otherwise
 * @returns `undefined` for a function that is told neither: it signs nothing
 */
export async function keyVault(
  env: Environment,
  options: { readonly fresh?: boolean } = {},
): Promise<KeyVault | undefined> {
  const { SIGNING_KEY_FOLDER: folder, SIGNING_KEY_SECRET: secret } = env;
  if (folder) return (await import("./folder-vault.ts")).folderVault(folder);
  if (secret) return (await import("./secret-vault.ts")).secretVault(secret, options);
  return undefined;
}
