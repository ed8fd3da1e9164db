import { VALUES_PREFIX } from "../../../infra/storage.ts";
import { ownCode } from "./own-code.ts";
import { type Made, reachOf } from "./reach.ts";

/**
 * On what a permission is, apart from the resource's name: `secret` is those that are read, by which the functions log in
 * to NATS and by which one of them signs; `key` is the latter.
 */
export type Target = "table" | "index" | "values" | "bucket" | "queue" | "secret" | "key";

/** An action of AWS's on a kind of resource, such as `dynamodb:GetItem table`. */
export type Call = `${string}:${string} ${Target}`;

/** What must be allowed for an item of a transaction (DynamoDB Developer Guide, "IAM for transactions"). */
const PARTS: Readonly<Record<string, Call>> = {
  Put: "dynamodb:PutItem table",
  Update: "dynamodb:UpdateItem table",
  Delete: "dynamodb:DeleteItem table",
  ConditionCheck: "dynamodb:ConditionCheckItem table",
};

/** Without it S3 says "access denied" of an object that is not there (Amazon S3 API Reference, GetObject). */
const LOOK: Call = "s3:ListBucket bucket";

/** What must be allowed for a request (Service Authorization Reference, of each service). */
const REQUESTS: Readonly<Record<string, readonly Call[]>> = {
  BatchGetCommand: ["dynamodb:BatchGetItem table"],
  DeleteCommand: ["dynamodb:DeleteItem table"],
  GetCommand: ["dynamodb:GetItem table"],
  PutCommand: ["dynamodb:PutItem table"],
  UpdateCommand: ["dynamodb:UpdateItem table"],
  DeleteObjectCommand: ["s3:DeleteObject values"],
  GetObjectCommand: ["s3:GetObject values", LOOK],
  PutObjectCommand: ["s3:PutObject values"],
  GetQueueAttributesCommand: ["sqs:GetQueueAttributes queue"],
  SendMessageBatchCommand: ["sqs:SendMessage queue"],
  PutSecretValueCommand: ["secretsmanager:PutSecretValue key"],
  // Of Powertools; it makes the request by itself.
  SecretsProvider: ["secretsmanager:GetSecretValue secret"],
};

/** Whether an instance of a class of this name is a request, or makes some by itself. */
const isRequest = (className: string) => /(Command\d*|SecretsProvider)$/.test(className);

/**
 * The calls that a function's own code can make, sorted.
 *
 * @param entry below `functions/`
 * @throws Error for a request of which it is not known here what it needs
 */
export async function callsOf(entry: string): Promise<Call[]> {
  const { made, fields } = reachOf(await ownCode(entry), isRequest);
  const parts = Object.keys(PARTS).filter((of) => fields.has(of));
  return [...new Set(made.flatMap((of) => neededFor(of, parts)))].toSorted();
}

function neededFor({ command, fields }: Made, parts: readonly string[]): readonly Call[] {
  const name = command.replace(/\d+$/, ""); // by which a bundler tells two of the same name apart
  if (name === "QueryCommand")
    return [fields.includes("IndexName") ? "dynamodb:Query index" : "dynamodb:Query table"];
  if (name === "TransactWriteCommand") return parts.flatMap((of) => PARTS[of] ?? []);
  const calls = REQUESTS[name];
  if (calls === undefined)
    throw new Error(`${name}: what must be allowed for it? Say so in test/infra/support/calls.ts`);
  return calls;
}

/** A request as it goes over the wire. */
export interface Seen {
  readonly service: "dynamodb" | "sqs" | "s3";
  /** The last part of the header `X-Amz-Target`; of S3 the method. */
  readonly operation: string;
  /** The path of its URL. */
  readonly path: string;
  readonly body: unknown;
}

const S3_REQUESTS: Readonly<Record<string, string>> = {
  DELETE: "DeleteObjectCommand",
  GET: "GetObjectCommand",
  PUT: "PutObjectCommand",
};

/** The calls that a request is. */
export function callsIn({ service, operation, path, body }: Seen): Call[] {
  const fields = typeof body === "object" && body !== null ? body : {};
  if (service === "s3") {
    const calls = REQUESTS[S3_REQUESTS[operation] ?? ""];
    // Below the bucket's name.
    if (calls === undefined || !path.split("/").slice(2).join("/").startsWith(VALUES_PREFIX))
      throw new Error(`S3 is asked for ${operation} ${path}`);
    return [...calls];
  }
  if (service === "sqs") return [`sqs:${operation.replace(/Batch$/, "")} queue`];
  if (operation === "TransactWriteItems" && "TransactItems" in fields && Array.isArray(fields.TransactItems))
    return fields.TransactItems.flatMap((of: object) => Object.keys(of).flatMap((part) => PARTS[part] ?? []));
  return [`dynamodb:${operation} ${"IndexName" in fields ? "index" : "table"}`];
}
