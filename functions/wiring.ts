import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { awsClient } from "../shared/config/aws-client.ts";
import { readBundled } from "../shared/config/bundled.ts";
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import { natsAccess, readEnv, workQueues } from "../shared/config/env.ts";
import { type Timing, timingFromEnv } from "../shared/config/timing.ts";
import { type Messenger, natsMessenger } from "../shared/events/messenger.ts";
import { natsPublisher, type Publisher } from "../shared/events/publisher.ts";
import { clientName, NatsLink } from "../shared/nats/index.ts";
import { dynamoStandings } from "../shared/policy/dynamodb-standing.ts";
import { type Policies, policiesOf } from "../shared/policy/runtime-policy.ts";
import { Standings } from "../shared/policy/standing.ts";
import { createSender, type Sender } from "../shared/queues/index.ts";
import { type Clock, systemClock } from "../shared/tasks/clock.ts";
import { dynamoPauses } from "../shared/tasks/dynamodb-pauses.ts";
import { dynamoStore } from "../shared/tasks/dynamodb-store.ts";
import type { TableAccess } from "../shared/tasks/dynamodb-transaction.ts";
import type { WorkHint } from "../shared/tasks/messages.ts";
import { Pauses } from "../shared/tasks/pauses.ts";
import type { Store } from "../shared/tasks/store.ts";
import { s3Values, type Values } from "../shared/tasks/values.ts";
import { createTelemetry, type PowertoolsTelemetry } from "../shared/telemetry/index.ts";
import { countThrottled } from "../shared/telemetry/throttled.ts";

/** How long a hint may wait for others to share its request, in milliseconds. */
const LINGER_MS = 3;

/** What a sandbox keeps from one invocation to the next. */
export interface Wiring {
  readonly deployment: DeploymentConfig;
  readonly timing: Timing;
  readonly telemetry: PowertoolsTelemetry;
  readonly nats: NatsLink;
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly messenger: Messenger;
  readonly standings: Standings;
  readonly policies: Policies;
  readonly now: () => number;
  readonly clock: Clock;
  /** For what only some functions do with the table. */
  readonly access: Pick<TableAccess, "client" | "table">;
}

/**
 * Makes a function's clients, once per sandbox. Nothing is connected before it is used.
 *
 * @param name the function's, under which NATS shows its connection
 * @param deployment what `sluice:deployment` holds
 */
export function wire(name: string, deployment: Readonly<Record<string, unknown>>): Wiring {
  const parsed = readBundled(deployment);
  const env = readEnv(["TABLE_NAME", "BUCKET_NAME"], process.env);
  const natsOf = natsAccess(parsed, process.env);
  const nats = new NatsLink(() => ({
    ...natsOf(),
    name: clientName(parsed.deployment, name),
  }));
  const timing = timingFromEnv(process.env);
  const telemetry = createTelemetry(timing);
  nats.onDisconnect(() => telemetry.count("NatsDisconnects"));
  const dynamodb = new DynamoDBClient(awsClient());
  countThrottled(dynamodb, telemetry);
  const client = DynamoDBDocumentClient.from(dynamodb, {
    marshallOptions: { removeUndefinedValues: true },
  });
  const values = s3Values({
    bucket: env.BUCKET_NAME,
    client: async () => {
      const { S3Client } = await import("../shared/tasks/s3.ts");
      return new S3Client(awsClient(30_000));
    },
  });
  const { now } = systemClock;
  const access = { client, table: env.TABLE_NAME };
  const standings = new Standings({ store: dynamoStandings(access), now, timing });
  return {
    deployment: parsed,
    timing,
    telemetry,
    nats,
    store: dynamoStore(access),
    values,
    publisher: natsPublisher({ connection: () => nats.get(), values, now }),
    messenger: natsMessenger({ connection: () => nats.get() }),
    standings,
    policies: policiesOf(parsed, standings),
    now,
    clock: systemClock,
    access,
  };
}

/** Puts hints on their agents' queues, several in a request: on its own where an agent has one, else on `work`. */
export function hinter(): (hint: WorkHint, delaySec?: number) => Promise<void> {
  const { shared, own } = workQueues(process.env);
  const senders = new Map<string, Sender>();
  let client: SQSClient | undefined;
  /** Made when it is first needed: most tasks are worked on without a hint, and a start need not wait for the client. */
  const senderTo = (queueUrl: string): Sender => {
    client ??= new SQSClient({ ...awsClient(), cacheMiddleware: true });
    const sender = senders.get(queueUrl) ?? createSender({ client, queueUrl, lingerMs: LINGER_MS });
    senders.set(queueUrl, sender);
    return sender;
  };
  return async (hint, delaySec = 0) => {
    const queueUrl = own.get(hint.to ?? "") ?? shared;
    // Only the function of a single agent knows no other queue, and then the message was put into the wrong one.
    if (queueUrl === undefined) throw new Error(`a hint for ${hint.to}: this function has no queue for it`);
    await senderTo(queueUrl).send({ body: JSON.stringify(hint), delaySeconds: delaySec });
  };
}

/** Which agents are paused: for functions that take tasks on. */
export function pausesOf({ access, standings }: Wiring): Pauses {
  return new Pauses({ store: dynamoPauses(access), standings });
}

/** Tells a running worker that its journal has news. */
export function teller({ nats, deployment }: Wiring): (taskId: string) => Promise<void> {
  return async (taskId) => (await nats.get()).publish(newsSubject(deployment.deployment, taskId));
}

/** The subject on which a running worker is told that its journal has news; only a hint, so core NATS will do. */
export function newsSubject(deployment: string, taskId: string): string {
  return `sluice.${deployment}.news.${taskId}`;
}
