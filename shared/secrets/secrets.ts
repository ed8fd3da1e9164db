import type { SecretsProvider } from "@aws-lambda-powertools/parameters/secrets";
import { awsClient } from "../config/aws-client.ts";

/** How long a secret is used as it was read, in seconds: each sandbox asks for it six times an hour at the most. */
const MAX_AGE_SEC = 600;
/** Three tries of three seconds: less than any function's timeout. */
export const CLIENT = awsClient(3_000);

/** Why a secret cannot be had. */
export type SecretErrorCode = "secret_missing" | "secret_denied" | "secret_unreadable" | "secret_unreachable";

/** A secret could not be read. The message names it and says what to do; it never holds anything of its value. */
export class SecretError extends Error {
  override readonly name = "SecretError";
  readonly code: SecretErrorCode;

  constructor(code: SecretErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Powertools keeps what was read, and forgets it on demand. Its part of a bundle is loaded only by deployments that
 * name a secret: 22 KB, of which the client of AWS, which we should need anyway, is 15 (measured beside SQS's, with
 * which it shares the rest).
 */
let provider: Promise<SecretsProvider> | undefined;

/**
 * The text of a secret in AWS Secrets Manager, in its current version. Kept for ten minutes.
 *
 * The endpoint is that of the region, or `AWS_ENDPOINT_URL_SECRETS_MANAGER` (AWS SDKs and Tools Reference Guide,
 * "Service-specific endpoints").
 *
 * @param secret its name or its ARN
 * @param options.fresh asks Secrets Manager, whatever was read before
 * @throws SecretError
 */
export async function readSecret(
  secret: string,
  options: { readonly fresh?: boolean } = {},
): Promise<string> {
  provider ??= open();
  let value: unknown;
  try {
    value = await (await provider).get(secret, {
      maxAge: MAX_AGE_SEC,
      forceFetch: options.fresh ?? false,
    });
  } catch (error) {
    throw failure(secret, error instanceof Error ? (error.cause ?? error) : error);
  }
  return textOf(secret, value);
}

async function open(): Promise<SecretsProvider> {
  const { SecretsProvider } = await import("@aws-lambda-powertools/parameters/secrets");
  return new SecretsProvider({ clientConfig: CLIENT });
}

/** A secret is stored as text, or as bytes when it was made from a file (Secrets Manager API: CreateSecret). */
function textOf(secret: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array)
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(value);
    } catch {
      // Said below, without the bytes.
    }
  throw new SecretError(
    "secret_unreadable",
    `secret ${secret}: expected text, got ${value instanceof Uint8Array ? "bytes that are not UTF-8" : "nothing"}`,
  );
}

/**
 * What Secrets Manager said (Secrets Manager API: GetSecretValue, PutSecretValue, errors), and what to do about it.
 *
 * @param action what it was asked for
 */
export function failure(secret: string, cause: unknown, action = "GetSecretValue"): SecretError {
  const name = cause instanceof Error ? cause.name : "";
  const reason = cause instanceof Error ? cause.message : String(cause);
  const error = (code: SecretErrorCode, text: string) =>
    new SecretError(code, `secret ${secret}: ${text}`, { cause });
  switch (name) {
    case "ResourceNotFoundException":
      return error(
        "secret_missing",
        "Secrets Manager has none of this name in this region, or none with a current value; create it, or correct the name",
      );
    case "InvalidRequestException":
      return error("secret_missing", `it has no value to be read (${reason}); restore it, or name another`);
    case "AccessDeniedException":
      return error(
        "secret_denied",
        `it may not be ${action === "GetSecretValue" ? "read" : "written"} (${reason}); allow secretsmanager:${action} on it`,
      );
    case "DecryptionFailure":
      return error("secret_denied", `it cannot be decrypted (${reason}); allow kms:Decrypt with its key`);
    default:
      return error(
        "secret_unreachable",
        `Secrets Manager cannot be asked (${reason}); check the network, the region and AWS_ENDPOINT_URL_SECRETS_MANAGER`,
      );
  }
}
