import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod";

/** A secret's value, or the name of the error that Secrets Manager answers with. */
export type Secret = { readonly text: string } | { readonly bytes: Uint8Array } | { readonly error: string };

/**
 * Answers GetSecretValue, PutSecretValue and CreateSecret as AWS Secrets Manager does (its API Reference; AWS JSON 1.1). npm has nothing that could be
 * used: what calls itself an emulator of it there is a plugin of another framework, or replaces the client.
 */
export interface TestSecretsManager {
  readonly url: string;
  /** What it holds, by name or ARN; may be changed at any time. */
  readonly secrets: Map<string, Secret>;
  /** The names that were asked for, in order. */
  readonly asked: string[];
  /** Declares a secret without a value, as CloudFormation makes one. */
  declare(name: string): void;
  stop(): Promise<void>;
}

const request = z.object({ SecretId: z.string() });
const put = z.object({
  SecretString: z.string(),
  ClientRequestToken: z.string().min(32).max(64),
});

/** A secret that has no current value: to GetSecretValue it is as one that is not there. */
const EMPTY: Secret = { error: "ResourceNotFoundException" };
/** The versions that were put, by secret and id. */
type Versions = Map<string, string>;
const creation = z.object({ Name: z.string(), SecretString: z.string() });

/** Starts one, and names it to every client in this process that is made from now on. */
export async function startSecretsManager(): Promise<TestSecretsManager> {
  const secrets = new Map<string, Secret>();
  const asked: string[] = [];
  const versions: Versions = new Map();
  const server = createServer((of, response) => {
    void answer(of, secrets, asked, versions).then(([status, body]) => {
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
    declare: (name) => void secrets.set(name, EMPTY),
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
  versions: Versions,
): Promise<[number, object]> {
  const body: unknown = JSON.parse(await text(of));
  if (of.headers["x-amz-target"] === "secretsmanager.CreateSecret") {
    const { Name, SecretString } = creation.parse(body);
    if (secrets.has(Name)) return [400, { __type: "ResourceExistsException" }];
    secrets.set(Name, { text: SecretString });
    return [200, { Name }];
  }
  const { SecretId } = request.parse(body);
  if (of.headers["x-amz-target"] === "secretsmanager.PutSecretValue")
    return putValue(SecretId, body, secrets, versions);
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

/** A version's id is given once: for the same text again nothing is done (its API Reference, PutSecretValue). */
function putValue(
  name: string,
  input: unknown,
  secrets: Map<string, Secret>,
  versions: Versions,
): [number, object] {
  const { SecretString, ClientRequestToken } = put.parse(input);
  const known = secrets.get(name);
  if (known === undefined || ("error" in known && known !== EMPTY)) {
    const name = known?.error ?? "ResourceNotFoundException";
    return [400, { __type: name, Message: `the reason for ${name}` }];
  }
  const version = `${name} ${ClientRequestToken}`;
  const before = versions.get(version);
  if (before !== undefined && before !== SecretString)
    return [400, { __type: "ResourceExistsException", Message: "the version is there" }];
  versions.set(version, SecretString);
  if (before === undefined) secrets.set(name, { text: SecretString });
  return [200, { Name: name, VersionId: ClientRequestToken, VersionStages: ["AWSCURRENT"] }];
}
