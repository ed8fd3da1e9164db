import { readCredentials } from "../../shared/nats/credentials.ts";
import { AWS_CLIENT } from "../place.ts";
import { type Finding, isMissing, ok, wrong } from "./finding.ts";

/** Whether a secret has a value. The value itself is neither read nor shown. */
export type SecretLook = (name: string) => Promise<boolean | undefined>;

/**
 * Looks whether what `nats.credentials` names can be had.
 *
 * @param credentials `none`, `file:PATH` or `secret:NAME`
 * @param deployed whether functions in AWS are to read it
 * @param isSet looks a secret up: undefined when there is none of the name
 */
export async function checkSecrets(
  credentials: string,
  deployed: boolean,
  isSet: SecretLook,
): Promise<readonly Finding[]> {
  const part = "credentials";
  if (credentials === "none") return [ok(part, "none are needed")];
  if (credentials.startsWith("secret:"))
    return [await secretFinding(credentials.slice("secret:".length), isSet)];
  if (deployed)
    return [
      wrong(
        part,
        `${credentials} is a file of this machine`,
        "put it into Secrets Manager, and name it secret:NAME",
      ),
    ];
  await readCredentials(credentials);
  return [ok(part, `${credentials} is set`)];
}

async function secretFinding(name: string, isSet: SecretLook): Promise<Finding> {
  const part = `secret ${name}`;
  const set = await isSet(name);
  if (set === undefined)
    return wrong(part, "does not exist", `aws secretsmanager create-secret --name ${name}`);
  if (!set) return wrong(part, "has no value", `aws secretsmanager put-secret-value --secret-id ${name}`);
  return ok(part, "is set");
}

/** A version that is current, in Secrets Manager (API reference, DescribeSecret). */
export const inSecretsManager: SecretLook = async (name) => {
  const { DescribeSecretCommand, SecretsManagerClient } = await import("@aws-sdk/client-secrets-manager");
  const client = new SecretsManagerClient(AWS_CLIENT);
  try {
    const { VersionIdsToStages = {}, DeletedDate } = await client.send(
      new DescribeSecretCommand({ SecretId: name }),
    );
    if (DeletedDate !== undefined) return undefined;
    return Object.values(VersionIdsToStages).some((stages) => stages.includes("AWSCURRENT"));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  } finally {
    client.destroy();
  }
};
