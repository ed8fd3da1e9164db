import { Stack } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { instanceId } from "../shared/cards/instance.ts";
import { credentialsFor } from "./asked-remotes.ts";
import type { FunctionName } from "./bundle.ts";
import type { Parts } from "./parts.ts";
import type { AgentQueue } from "./queues.ts";

/**
 * What a function is told (shared/config/env.ts reads it).
 *
 * @param own the agent's queue, for a work function of its own: it hints at no other agent's tasks
 */
export function environmentOf(
  scope: Construct,
  name: FunctionName,
  parts: Parts,
  own?: AgentQueue,
): Record<string, string> {
  const { queues, nats } = parts;
  const { servers, credentials } = nats.override;
  const forwards = {
    TASKS_QUEUE_URL: queues.tasks.queue.queueUrl,
    CONTROLS_QUEUE_URL: queues.controls.queue.queueUrl,
    EVENTS_QUEUE_URL: queues.events.queue.queueUrl,
  };
  const shows = { INSTANCE_ID: instanceId(Stack.of(scope).stackName) };
  const remembers = { TABLE_NAME: parts.storage.table.tableName };
  // Their values are none of the template's business: where the function runs they are there, or handed on (docs/local-host.md).
  const { variables } = credentialsFor(name, parts, own);
  const asks = variables.length > 0 && { CREDENTIAL_VARIABLES: variables.join(",") };
  const told: Partial<Record<FunctionName, Record<string, string>>> = {
    bridge: { ...forwards, ...shows },
    cards: { ...remembers, ...shows, SIGNING_KEY_SECRET: parts.signingKey.arn },
  };
  return {
    ...(told[name] ?? { ...stored(parts), ...hints(scope, parts, own) }),
    ...asks,
    ...(servers !== undefined && { NATS_SERVERS: servers }),
    ...(credentials !== undefined && { NATS_CREDENTIALS: credentials }),
    POWERTOOLS_SERVICE_NAME: name,
    POWERTOOLS_METRICS_NAMESPACE: metricsNamespace(scope),
    LOG_LEVEL: "INFO",
    NODE_OPTIONS: "--enable-source-maps",
  };
}

/** Where a stack's own metrics are: those of another stage must not count among them. */
export function metricsNamespace(scope: Construct): string {
  return `Sluice/${Stack.of(scope).stackName}`;
}

function stored({ storage }: Parts): Record<string, string> {
  return { TABLE_NAME: storage.table.tableName, BUCKET_NAME: storage.bucket.bucketName };
}

/** The queue that agents share, and by runtime those that are one agent's. */
function hints(scope: Construct, { queues }: Parts, own?: AgentQueue): Record<string, string> {
  const agents = own === undefined ? queues.own : [own];
  const urls = Object.fromEntries(agents.map(({ runtime, pair }) => [runtime, pair.queue.queueUrl]));
  return {
    ...(own === undefined && { WORK_QUEUE_URL: queues.work.queue.queueUrl }),
    ...(agents.length > 0 && { WORK_QUEUE_URLS: Stack.of(scope).toJsonString(urls) }),
  };
}
