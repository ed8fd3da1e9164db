import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import * as z from "zod";
import { awsSettings } from "../infra/local/aws.ts";
import { dynamoStore } from "../shared/tasks/dynamodb-store.ts";
import type { Store } from "../shared/tasks/store.ts";
import { s3Values, type Values } from "../shared/tasks/values.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";

/** A person waits: an endpoint that does not answer is said soon. */
const AWS_CLIENT = { maxAttempts: 2, requestHandler: { connectionTimeout: 3_000, requestTimeout: 10_000 } };

/** Where a deployment keeps its tasks, open for reading alone. */
export interface OpenStack extends Disposable {
  /** What it is called in an error. */
  readonly label: string;
  readonly store: Pick<Store, "head" | "entries" | "slots">;
  readonly values: Pick<Values, "text">;
}

/** A table and a bucket; with endpoints where they are not AWS's own. */
interface Place {
  readonly label: string;
  readonly table: string;
  readonly bucket: string;
  readonly endpoints?: { readonly dynamodb: string; readonly s3: string };
}

/**
 * Opens the stack of that name, or the one of the local host that runs in this folder. Region and credentials are what
 * the AWS SDK finds.
 *
 * @throws CliError `usage` when there is no stack of that name, or it is none of ours; `unreachable` when nobody answers
 */
export async function openStack(home: Pick<Home, "stack">, name?: string): Promise<OpenStack> {
  const { label, table, bucket, endpoints } =
    name === undefined ? localPlace(home) : await deployedPlace(name);
  const at = (endpoint?: string) => (endpoint === undefined ? {} : awsSettings(endpoint));
  const client = new DynamoDBClient({ ...AWS_CLIENT, ...at(endpoints?.dynamodb) });
  const values = s3Values({
    bucket,
    client: async () => {
      const { S3Client } = await import("@aws-sdk/client-s3");
      return new S3Client({ ...AWS_CLIENT, ...at(endpoints?.s3), forcePathStyle: endpoints !== undefined });
    },
  });
  return {
    label,
    store: dynamoStore({ client: DynamoDBDocumentClient.from(client), table }),
    values,
    [Symbol.dispose]: () => client.destroy(),
  };
}

function localPlace({ stack }: Pick<Home, "stack">): Place {
  if (stack === undefined)
    throw new CliError(
      EXIT.unreachable,
      "no local host runs in this folder: start Sluice with `npm start`, or name a deployed stack with --stack",
    );
  const { dynamodb, s3, table, bucket } = stack;
  return { label: "the local host", table, bucket, endpoints: { dynamodb, s3 } };
}

/** The outputs that every stack of ours has (infra/stack.ts). */
const outputs = z.object({ TableName: z.string().min(1), BucketName: z.string().min(1) });

async function deployedPlace(name: string): Promise<Place> {
  const label = `the stack ${name}`;
  const { CloudFormationClient, DescribeStacksCommand } = await import("@aws-sdk/client-cloudformation");
  const client = new CloudFormationClient(AWS_CLIENT);
  try {
    const { Stacks } = await reach(
      label,
      client.send(new DescribeStacksCommand({ StackName: name })).catch((error: unknown) => {
        if (isUnknown(error))
          throw new CliError(EXIT.usage, `--stack ${name}: there is no stack of this name`);
        throw error;
      }),
    );
    const told = (Stacks?.[0]?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
    const read = outputs.safeParse(Object.fromEntries(told));
    if (!read.success)
      throw new CliError(
        EXIT.usage,
        `--stack ${name}: expected a stack of Sluice, with the outputs TableName and BucketName`,
      );
    return { label, table: read.data.TableName, bucket: read.data.BucketName };
  } finally {
    client.destroy();
  }
}

/** CloudFormation has no error of its own for it (API reference, DescribeStacks). */
function isUnknown(error: unknown): boolean {
  return (
    error instanceof Error && error.name === "ValidationError" && error.message.includes("does not exist")
  );
}

/**
 * Waits for what a stack answers.
 *
 * @throws CliError `unreachable` when it does not, or refuses; `failed` when it holds what this version cannot read
 */
export async function reach<T>(label: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    if (cause instanceof z.ZodError) {
      const [issue] = cause.issues;
      const field = issue?.path.join(".");
      throw new CliError(
        EXIT.failed,
        `${label} holds what this version cannot read: ${field}: ${issue?.message}`,
        {
          cause,
        },
      );
    }
    throw new CliError(EXIT.unreachable, `cannot read ${label}: ${reasonOf(cause)}`, { cause });
  }
}

/** An error of a refused connection has no message, only a code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  return error.message === "" ? code : error.message;
}
