import { CLIENT, failure } from "./secrets.ts";

/**
 * Stores a text as the current version of a secret, unless there is a version of this id already.
 *
 * @param secret its name or ARN
 * @param version 32 to 64 characters (Secrets Manager API Reference, PutSecretValue: ClientRequestToken)
 * @returns false if there is one with another text, and nothing is changed
 * @throws SecretError
 */
export async function putSecretOnce(secret: string, text: string, version: string): Promise<boolean> {
  const { PutSecretValueCommand, SecretsManagerClient } = await import("@aws-sdk/client-secrets-manager");
  const client = new SecretsManagerClient(CLIENT);
  const command = new PutSecretValueCommand({
    SecretId: secret,
    SecretString: text,
    ClientRequestToken: version,
  });
  try {
    await client.send(command);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "ResourceExistsException") return false;
    throw failure(secret, error, "PutSecretValue");
  } finally {
    client.destroy();
  }
}
