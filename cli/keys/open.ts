import { folderVault, keyFolder } from "../../shared/cards/folder-vault.ts";
import type { KeyVault } from "../../shared/cards/keys.ts";
import { secretVault } from "../../shared/cards/secret-vault.ts";
import { KeyError } from "../../shared/cards/signing-key.ts";
import { SecretError } from "../../shared/secrets/secrets.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Home } from "../home.ts";
import { findPlace } from "../place.ts";

/**
 * Where the signing key of a deployment is: the data folder of the local host that runs in this folder, or the secret of
 * the stack of that name.
 *
 * @throws CliError as {@link findPlace}; `failed` when it does not tell, being of an older version
 */
export async function openVault(home: Pick<Home, "stack">, stack?: string): Promise<KeyVault> {
  const { label, local, outputs } = await findPlace(home, stack);
  if (local !== undefined) {
    if (local.dataDir !== undefined) return folderVault(keyFolder(local.dataDir));
    throw new CliError(EXIT.failed, `${label} does not tell its data folder: it is of an older version`);
  }
  const { SigningKeySecret: secret } = outputs;
  if (secret === undefined)
    throw new CliError(
      EXIT.failed,
      `${label} has no output SigningKeySecret: it is of an older version; deploy it`,
    );
  return secretVault(secret, { fresh: true });
}

/** Waits for what a vault answers. @throws CliError with its words */
export async function said<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof KeyError) throw new CliError(EXIT.failed, error.message, { cause: error });
    if (error instanceof SecretError) throw new CliError(EXIT.unreachable, error.message, { cause: error });
    // Such as a full disk, or another user's folder (Node.js: Errors, system errors). A key is replaced at once or not at all.
    if (error instanceof Error && "syscall" in error)
      throw new CliError(
        EXIT.failed,
        `the folder of the signing key cannot be read or written: ${error.message}; the key is as it was`,
        { cause: error },
      );
    throw error;
  }
}
