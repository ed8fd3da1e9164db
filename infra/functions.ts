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

export interface FunctionsProps {
  readonly storage: Storage;
  readonly queues: Queues;
  /** Each function's bundle. */
  readonly folders: Readonly<Record<FunctionName, string>>;
  readonly nats: NatsOverride;
}

/** The functions with their roles, logs and event source mappings. */
export class Functions extends Construct {
  readonly all: Readonly<Record<FunctionName, LambdaFunction>>;
  readonly #props: FunctionsProps;

  constructor(scope: Construct, id: string, props: FunctionsProps) {
    super(scope, id);
    this.#props = props;
    this.all = {
      bridge: this.#make("bridge", "Forwards NATS messages to the queues"),
      admit: this.#make("admit", "Decides each task once"),
      control: this.#make("control", "Answers cancel and status"),
      work: this.#make("work", "Runs the agents' handlers"),
      sweep: this.#make("sweep", "Picks up whatever is due and nobody holds"),
    };
    for (const queue of QUEUE_NAMES) this.#consume(queue);
  }

  #make(name: FunctionName, description: string): LambdaFunction {
    const scope = new Construct(this, name);
    const { memoryMb, timeoutSec } = FUNCTION_SIZES[name];
    const logGroup = new LogGroup(scope, "Logs", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    return new LambdaFunction(scope, "Function", {
      description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: "index.handler",
      code: Code.fromAsset(this.#props.folders[name]),
      memorySize: memoryMb,
      timeout: Duration.seconds(timeoutSec),
      environment: this.#environment(name),
      role: this.#role(scope, name, logGroup),
      logGroup,
      ...(name === "bridge" && { reservedConcurrentExecutions: BRIDGE_CONCURRENCY }),
      // The schedule starts the next run anyway; a run of the past is of no use to anybody.
      ...((name === "bridge" || name === "sweep") && { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
    });
  }

  #environment(name: FunctionName): Record<string, string> {
    const { storage, queues, nats } = this.#props;
    const url = (queue: QueueName) => queues.pairs[queue].queue.queueUrl;
    const storageNames = { TABLE_NAME: storage.table.tableName, BUCKET_NAME: storage.bucket.bucketName };
    const own: Record<FunctionName, Record<string, string>> = {
      bridge: { TASKS_QUEUE_URL: url("tasks"), CONTROLS_QUEUE_URL: url("controls") },
      admit: { ...storageNames, WORK_QUEUE_URL: url("work") },
      control: storageNames,
      work: { ...storageNames, WORK_QUEUE_URL: url("work") },
      sweep: { ...storageNames, WORK_QUEUE_URL: url("work") },
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

  /** A role of its own, for AWS's managed one may write to every log group. */
  #role(scope: Construct, name: FunctionName, logGroup: LogGroup): Role {
    const { storage, queues } = this.#props;
    const logs = new PolicyStatement({
      actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
      resources: [logGroup.logGroupArn],
    });
    const role = new Role(scope, "Role", {
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

  #consume(queue: QueueName): void {
    const { consumer, batchSize, maxConcurrency } = CONSUMPTION[queue];
    new EventSourceMapping(this.all[consumer], "Source", {
      target: this.all[consumer],
      eventSourceArn: this.#props.queues.pairs[queue].queue.queueArn,
      batchSize,
      maxConcurrency,
      reportBatchItemFailures: true,
    });
  }
}
