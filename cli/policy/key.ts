import { readSecret, SecretError } from "../../shared/secrets/secrets.ts";
import { CliError, EXIT } from "../errors.ts";
import { keyFile, keyOf, newKeyText } from "../key-file.ts";
import { AWS_CLIENT, type Place, reach } from "../place.ts";

/** The secret of a stack's confirmation tokens in Secrets Manager. */
export function confirmationSecret(stack: string): string {
  return `sluice/${stack}/confirmation`;
}

/**
 * The key that signs a stack's confirmation tokens, made when it is first needed: in Secrets Manager for a deployed
 * stack, for a local host in its data folder. No function may read it.
 *
 * @throws CliError `unreachable` when Secrets Manager refuses; `failed` when the key is not as it was made
 */
export async function confirmationKey({ deployed, local }: Place): Promise<Uint8Array> {
  if (deployed !== undefined)
    return keyOf(await secretText(deployed.name), confirmationSecret(deployed.name));
  if (local?.dataDir === undefined)
    throw new CliError(
      EXIT.failed,
      "the local host does not tell its data folder: start it again with `npm start`",
    );
  return keyFile(local.dataDir);
}

async function secretText(stack: string): Promise<string> {
  const name = confirmationSecret(stack);
  try {
    return await readSecret(name);
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    if (error.code !== "secret_missing")
      throw new CliError(EXIT.unreachable, error.message, { cause: error });
  }
  await makeSecret(stack, name);
  return await reach(`secret ${name}`, readSecret(name, { fresh: true }));
}

async function makeSecret(stack: string, name: string): Promise<void> {
  const { CreateSecretCommand, SecretsManagerClient } = await import("@aws-sdk/client-secrets-manager");
  const client = new SecretsManagerClient(AWS_CLIENT);
  const made = client.send(
    new CreateSecretCommand({
      Name: name,
      Description: `Signs the confirmation tokens of the stack ${stack} (sluice policy)`,
      SecretString: newKeyText(),
    }),
  );
  try {
    await reach(
      `secret ${name}`,
      // Somebody else was first.
      made.catch((error: unknown) => {
        if (!(error instanceof Error && error.name === "ResourceExistsException")) throw error;
      }),
    );
  } finally {
    client.destroy();
  }
}
