import type { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import * as z from "zod";
import { awsSettings } from "../infra/local/aws.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home, LocalStack } from "./home.ts";
import { USUAL_START } from "./start-again.ts";
import { cleanLine } from "./text.ts";

/** A person waits: an endpoint that does not answer is said soon. */
export const AWS_CLIENT = {
  maxAttempts: 2,
  requestHandler: { connectionTimeout: 3_000, requestTimeout: 10_000, throwOnRequestTimeout: true },
};

/** A deployment's stack: that of a local host, or one in AWS. */
export interface Place {
  /** What it is called in an error. */
  readonly label: string;
  /** The stack's outputs (infra/stack.ts). */
  readonly outputs: Outputs;
  /** The local host, if it is one. */
  readonly local?: LocalStack;
  /** The stack in AWS, if it is one. */
  readonly deployed?: Deployed;
}

export interface Deployed {
  readonly name: string;
  /** How it is, in CloudFormation's words, such as `UPDATE_COMPLETE`. */
  readonly status: string;
  /** How far our clock is ahead of AWS's, in milliseconds, as far as its answer tells. */
  readonly aheadMs?: number;
}

/** The outputs that every stack of ours has. */
const outputs = z
  .object({ TableName: z.string().min(1), BucketName: z.string().min(1) })
  .catchall(z.string());
export type Outputs = z.infer<typeof outputs>;

/** The settings of an AWS client for one of a place's parts. Region and credentials are what the AWS SDK finds. */
export function clientSettings({ local }: Pick<Place, "local">, part: "dynamodb" | "lambda" | "s3" | "sqs") {
  const endpoint = local?.[part];
  return { ...AWS_CLIENT, ...(endpoint === undefined ? {} : awsSettings(endpoint)) };
}

/**
 * Finds the stack of that name, or the local host that runs in this folder.
 *
 * @throws CliError `usage` when there is no stack of that name, or it is none of ours; `unreachable` when nobody answers
 */
export async function findPlace(home: Pick<Home, "stack" | "start">, name?: string): Promise<Place> {
  if (name !== undefined) return deployedPlace(name);
  if (home.stack === undefined)
    throw new CliError(
      EXIT.unreachable,
      `no local host runs in this folder: start Sluice with \`${home.start ?? USUAL_START}\`, or name a deployed stack with --stack`,
    );
  const { table: TableName, bucket: BucketName, outputs: more } = home.stack;
  return { label: "the local host", outputs: { ...more, TableName, BucketName }, local: home.stack };
}

async function deployedPlace(name: string): Promise<Place> {
  const label = `the stack ${name}`;
  const { CloudFormationClient, DescribeStacksCommand } = await import("@aws-sdk/client-cloudformation");
  const client = new CloudFormationClient(AWS_CLIENT);
  const aheadMs = watchClock(client);
  try {
    const { Stacks } = await reach(
      label,
      client.send(new DescribeStacksCommand({ StackName: name })).catch((error: unknown) => {
        if (isUnknown(error))
          throw new CliError(EXIT.usage, `--stack ${name}: there is no stack of this name`);
        const advice = awsAdvice(error);
        if (advice === undefined) throw error;
        throw new CliError(
          EXIT.unreachable,
          `cannot read ${label}: ${cleanLine(reasonOf(error), 300)}; ${advice}`,
          { cause: error },
        );
      }),
    );
    const [stack] = Stacks ?? [];
    const told = (stack?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]);
    const read = outputs.safeParse(Object.fromEntries(told));
    if (!read.success)
      throw new CliError(
        EXIT.usage,
        `--stack ${name}: expected a stack of Sluice, with the outputs TableName and BucketName`,
      );
    const ahead = aheadMs();
    const deployed = {
      name,
      status: stack?.StackStatus ?? "unknown",
      ...(ahead !== undefined && { aheadMs: ahead }),
    };
    return { label, outputs: read.data, deployed };
  } finally {
    client.destroy();
  }
}

const SET_REGION = "set AWS_REGION to the region of the stack, or AWS_PROFILE to a profile that has one";
const SET_CREDENTIALS =
  "set AWS_PROFILE to a profile that may read it, or log in again; `aws sts get-caller-identity` tells as whom AWS sees you";

/** The names of AWS's errors that say it does not know us (IAM User Guide, "Troubleshoot"; API references, "Common errors"). */
const STRANGER =
  /^(CredentialsProviderError|TokenProviderError|ExpiredToken(Exception)?|InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|InvalidSignatureException)$/;

/** What the user is to set when AWS cannot be asked for want of a region or of credentials; nothing at other errors. */
export function awsAdvice(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // Of the SDK's error only the text tells (@smithy/config-resolver, resolveRegionConfig).
  if (error.message === "Region is missing") return SET_REGION;
  return STRANGER.test(error.name) ? SET_CREDENTIALS : undefined;
}

const dated = z.object({ response: z.object({ headers: z.object({ date: z.string() }) }) });

/**
 * Compares our clock with the one that a client's answers tell (RFC 9110 §6.6.1: Date, in whole seconds).
 *
 * @returns what gives the difference after an answer, in milliseconds; positive when ours is ahead
 */
function watchClock(client: CloudFormationClient): () => number | undefined {
  let ahead: number | undefined;
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAt = Date.now();
      const result = await next(args);
      const at = Date.parse(dated.safeParse(result).data?.response.headers.date ?? "");
      // Half of the way there and back, and half of the second that is cut off.
      if (!Number.isNaN(at)) ahead = (sentAt + Date.now()) / 2 - (at + 500);
      return result;
    },
    { step: "deserialize", name: "sluiceClock", override: true },
  );
  return () => ahead;
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
        { cause },
      );
    }
    throw new CliError(EXIT.unreachable, `cannot read ${label}: ${reasonOf(cause)}`, { cause });
  }
}

/** What an error says; that of a refused connection has no message, only a code. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  return error.message === "" ? code : error.message;
}
