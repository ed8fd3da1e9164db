import { randomBytes } from "node:crypto";
import { linkSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSecret, SecretError } from "../../shared/secrets/secrets.ts";
import { CliError, EXIT } from "../errors.ts";
import { AWS_CLIENT, type Place, reach } from "../place.ts";

/** As long as the hash that it keys puts out: more adds nothing (RFC 2104 §3). */
const KEY_BYTES = 32;
const KEY = /^[A-Za-z0-9_-]{43}$/;
const FILE = "confirmation.key";

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
  const path = join(local.dataDir, FILE);
  return keyOf(fileText(local.dataDir, path), path);
}

function keyOf(text: string, where: string): Uint8Array {
  if (KEY.test(text)) return Buffer.from(text, "base64url");
  throw new CliError(
    EXIT.failed,
    `${where}: expected ${KEY_BYTES} bytes as base64url; take it away, and plan anew`,
  );
}

function fileText(folder: string, path: string): string {
  try {
    // Others on this machine must not be able to sign.
    if ((statSync(path).mode & 0o077) !== 0)
      throw new CliError(EXIT.failed, `${path}: expected a file that only its owner may read (chmod 600)`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  makeFile(folder, path);
  return readFileSync(path, "utf8");
}

/** Puts the whole key at its place or nothing: of two who do so at once, the first counts. */
function makeFile(folder: string, path: string): void {
  const scratch = mkdtempSync(join(folder, "key-"));
  try {
    const made = join(scratch, FILE);
    writeFileSync(made, randomBytes(KEY_BYTES).toString("base64url"), { mode: 0o600 });
    linkSync(made, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(scratch, { recursive: true });
  }
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
      SecretString: randomBytes(KEY_BYTES).toString("base64url"),
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
