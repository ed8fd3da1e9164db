import { Duration, RemovalPolicy, Validations } from "aws-cdk-lib";
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  EventSourceMapping,
  Function as LambdaFunction,
  Runtime,
} from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { FunctionName } from "./bundle.ts";
import { statementsFor, usesValues } from "./grants.ts";
import type { Queues } from "./queues.ts";
import { BRIDGE_CONCURRENCY, CONSUMPTION, FUNCTION_SIZES, QUEUE_NAMES, type QueueName } from "./sizes.ts";
import { type Storage, VALUES_PREFIX } from "./storage.ts";

/** Where NATS is, when the stack rather than `agents.yaml` says so. */
export interface NatsOverride {
  /** URLs, separated by commas. */
  readonly servers?: string;
  readonly credentials?: string;
}

export interface SluiceFunctionProps {
  readonly description: string;
  /** The folder of its bundle. */
  readonly folder: string;
  readonly storage: Storage;
  readonly queues: Queues;
  readonly nats: NatsOverride;
}

/** A function with its role, its logs and the queues that it consumes. */
export class SluiceFunction extends Construct {
  readonly function: LambdaFunction;

  constructor(scope: Construct, name: FunctionName, props: SluiceFunctionProps) {
    super(scope, name);
    const { memoryMb, timeoutSec } = FUNCTION_SIZES[name];
    const logGroup = new LogGroup(this, "Logs", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.function = new LambdaFunction(this, "Default", {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: "index.handler",
      code: Code.fromAsset(props.folder),
      memorySize: memoryMb,
      timeout: Duration.seconds(timeoutSec),
      environment: environmentOf(name, props),
      role: this.#role(name, props, logGroup),
      logGroup,
      ...(name === "bridge" && { reservedConcurrentExecutions: BRIDGE_CONCURRENCY }),
      // The schedule starts the next run anyway; a run of the past is of no use to anybody.
      ...((name === "bridge" || name === "sweep") && { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
    });
    for (const queue of QUEUE_NAMES)
      if (CONSUMPTION[queue].consumer === name) this.#consume(queue, props.queues);
  }

  /** A role of its own, for AWS's managed one may write to every log group. */
  #role(name: FunctionName, { storage, queues }: SluiceFunctionProps, logGroup: LogGroup): Role {
    const logs = new PolicyStatement({
      actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
      resources: [logGroup.logGroupArn],
    });
    const role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: {
        sluice: new PolicyDocument({ statements: [logs, ...statementsFor(name, storage, queues)] }),
      },
    });
    if (usesValues(name))
      Validations.of(role).acknowledge({
        id: `AwsSolutions-IAM5[Resource::<${storage.bucketLogicalId}.Arn>/${VALUES_PREFIX}*]`,
        reason: "The keys below values/ are known only when a value is written.",
      });
    return role;
  }

  #consume(queue: QueueName, queues: Queues): void {
    const { batchSize, maxConcurrency } = CONSUMPTION[queue];
    new EventSourceMapping(this, "Source", {
      target: this.function,
      eventSourceArn: queues[queue].queue.queueArn,
      batchSize,
      maxConcurrency,
      reportBatchItemFailures: true,
    });
  }
}

/** What a function is told (shared/config/env.ts reads it). */
function environmentOf(name: FunctionName, props: SluiceFunctionProps): Record<string, string> {
  const { storage, queues, nats } = props;
  const stored = { TABLE_NAME: storage.table.tableName, BUCKET_NAME: storage.bucket.bucketName };
  const hints = { WORK_QUEUE_URL: queues.work.queue.queueUrl };
  const own: Record<FunctionName, Record<string, string>> = {
    bridge: {
      TASKS_QUEUE_URL: queues.tasks.queue.queueUrl,
      CONTROLS_QUEUE_URL: queues.controls.queue.queueUrl,
      EVENTS_QUEUE_URL: queues.events.queue.queueUrl,
    },
    admit: { ...stored, ...hints },
    control: { ...stored, ...hints },
    events: { ...stored, ...hints },
    work: { ...stored, ...hints },
    sweep: { ...stored, ...hints },
  };
  return {
    ...own[name],
    ...(nats.servers !== undefined && { NATS_SERVERS: nats.servers }),
    ...(nats.credentials !== undefined && { NATS_CREDENTIALS: nats.credentials }),
    POWERTOOLS_SERVICE_NAME: name,
    POWERTOOLS_METRICS_NAMESPACE: "Sluice",
    LOG_LEVEL: "INFO",
    NODE_OPTIONS: "--enable-source-maps",
  };
}
