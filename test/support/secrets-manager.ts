import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod";

/** A secret's value, or the name of the error that Secrets Manager answers with. */
export type Secret = { readonly text: string } | { readonly bytes: Uint8Array } | { readonly error: string };

/**
 * Answers GetSecretValue and CreateSecret as AWS Secrets Manager does (its API Reference; AWS JSON 1.1). npm has nothing that could be
 * used: what calls itself an emulator of it there is a plugin of another framework, or replaces the client.
 */
export interface TestSecretsManager {
  readonly url: string;
  /** What it holds, by name or ARN; may be changed at any time. */
  readonly secrets: Map<string, Secret>;
  /** The names that were asked for, in order. */
  readonly asked: string[];
  stop(): Promise<void>;
}

const request = z.object({ SecretId: z.string() });
const creation = z.object({ Name: z.string(), SecretString: z.string() });

/** Starts one, and names it to every client in this process that is made from now on. */
export async function startSecretsManager(): Promise<TestSecretsManager> {
  const secrets = new Map<string, Secret>();
  const asked: string[] = [];
  const server = createServer((of, response) => {
    void answer(of, secrets, asked).then(([status, body]) => {
      response.writeHead(status, { "content-type": "application/x-amz-json-1.1" });
      response.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_SECRETS_MANAGER: url,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  });
  return {
    url,
    secrets,
    asked,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  of: IncomingMessage,
  secrets: Map<string, Secret>,
  asked: string[],
): Promise<[number, object]> {
  const body: unknown = JSON.parse(await text(of));
  if (of.headers["x-amz-target"] === "secretsmanager.CreateSecret") {
    const { Name, SecretString } = creation.parse(body);
    if (secrets.has(Name)) return [400, { __type: "ResourceExistsException" }];
    secrets.set(Name, { text: SecretString });
    return [200, { Name }];
  }
  const { SecretId } = request.parse(body);
  if (of.headers["x-amz-target"] !== "secretsmanager.GetSecretValue")
    return [400, { __type: "UnknownOperationException" }];
  asked.push(SecretId);
  const secret = secrets.get(SecretId) ?? { error: "ResourceNotFoundException" };
  if ("error" in secret) {
    const message = `the reason for ${secret.error}`;
    return [secret.error.startsWith("Internal") ? 500 : 400, { __type: secret.error, Message: message }];
  }
  const value =
    "text" in secret
      ? { SecretString: secret.text }
      : { SecretBinary: Buffer.from(secret.bytes).toString("base64") };
  return [200, { Name: SecretId, VersionStages: ["AWSCURRENT"], ...value }];
}
