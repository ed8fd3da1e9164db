import { KEYS } from "./aws.ts";
import type { Endpoints } from "./host-options.ts";
import { REGION } from "./intrinsics.ts";
import type { FunctionDeclaration } from "./stack.ts";

/** Of the host's own environment, only what a program needs to find others; of its secrets none that is not named. */
const INHERITED = ["HOME", "LANG", "PATH", "TMPDIR"];

/** Those in which credentials of remote agents are kept, of the functions that ask them (infra/environment.ts). */
function credentialVariables({ environment }: Pick<FunctionDeclaration, "environment">): string[] {
  return environment.CREDENTIAL_VARIABLES?.split(",") ?? [];
}

/** The names of those that this process has a value of, to hand on. */
export function heldCredentials(declarations: readonly Pick<FunctionDeclaration, "environment">[]): string[] {
  const names = new Set(declarations.flatMap(credentialVariables));
  return [...names].filter((name) => process.env[name]?.trim());
}

/**
 * The environment of a function's processes: what the template declares, what the Lambda runtime sets (AWS Lambda:
 * "Defined runtime environment variables"), and where the parts are on this machine.
 */
export function functionEnvironment(
  declaration: FunctionDeclaration,
  endpoints: Endpoints,
  nats: { readonly credentials: string; readonly ca: string | undefined },
  scale: number,
  further: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const inherited = [...INHERITED, ...credentialVariables(declaration)].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(inherited),
    ...declaration.environment,
    _HANDLER: declaration.handler,
    AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_S3: endpoints.s3,
    AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x",
    AWS_LAMBDA_FUNCTION_NAME: declaration.name,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(declaration.memoryMb),
    AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
    AWS_LAMBDA_INITIALIZATION_TYPE: "on-demand",
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${declaration.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: "local",
    LAMBDA_TASK_ROOT: declaration.codeDir,
    NATS_SERVERS: endpoints.nats,
    NATS_CREDENTIALS: nats.credentials,
    // Trusted beside the usual authorities by everything in the process.
    ...(nats.ca === undefined ? {} : { NODE_EXTRA_CA_CERTS: nats.ca }),
    TIME_SCALE: String(scale),
    TZ: ":UTC",
    ...further,
  };
}
