import { CfnOutput, type Stack } from "aws-cdk-lib";
import type { Parts } from "./parts.ts";
import type { QueuePair } from "./queues.ts";
import { QUEUE_NAMES } from "./sizes.ts";

/** Who a stack is. */
export interface Identity {
  readonly deployment: string;
  readonly stage: string;
  /** That of the code that it was made by. */
  readonly version: string;
}

/** What computes: a function or a service, by name. */
export interface Computing {
  readonly functions: Readonly<Record<string, string>>;
  readonly logGroups: Readonly<Record<string, string>>;
}

/** What `sluice --stack NAME` finds a deployed stack's parts by (docs/deploying.md). Nothing of it is a secret. */
export function declareOutputs(stack: Stack, identity: Identity, parts: Parts, computing: Computing): void {
  const { storage, queues, nats, signingKey } = parts;
  const json = (value: unknown) => stack.toJsonString(value);
  const values: Record<string, string> = {
    DeploymentName: identity.deployment,
    Stage: identity.stage,
    Version: identity.version,
    TableName: storage.table.tableName,
    BucketName: storage.bucket.bucketName,
    NatsServers: nats.servers.join(","),
    NatsCredentials: nats.credentials,
    SigningKeySecret: signingKey.arn,
    AgentQueueUrls: json(Object.fromEntries(queues.own.map(({ agentId, pair }) => [agentId, urlsOf(pair)]))),
    FunctionNames: json(computing.functions),
    LogGroupNames: json(computing.logGroups),
  };
  for (const name of QUEUE_NAMES) {
    const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const { queue, dead } = urlsOf(queues[name]);
    values[`${title}QueueUrl`] = queue;
    values[`${title}DeadQueueUrl`] = dead;
  }
  for (const [name, value] of Object.entries(values)) new CfnOutput(stack, name, { value });
}

function urlsOf({ queue, dead }: QueuePair): { queue: string; dead: string } {
  return { queue: queue.queueUrl, dead: dead.queueUrl };
}
