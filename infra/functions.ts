import { Duration } from "aws-cdk-lib";
import { Effect, Policy, PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  EventSourceMapping,
  Function as LambdaFunction,
  Runtime,
  Tracing,
} from "aws-cdk-lib/aws-lambda";
import type { LogGroup } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { AgentFunction } from "../shared/config/cloud.ts";
import { keepWithinQuotas } from "./aws-quotas.ts";
import type { FunctionName } from "./bundle.ts";
import { environmentOf } from "./environment.ts";
import { acknowledgeWildcards, IN_VPC, ownStatements, statementsFor, TRACES } from "./grants.ts";
import { forgettingLogs } from "./logs.ts";
import type { Parts } from "./parts.ts";
import type { AgentQueue, QueuePair } from "./queues.ts";
import { BRIDGE_CONCURRENCY, CONSUMPTION, FUNCTION_SIZES, type FunctionSize, QUEUE_NAMES } from "./sizes.ts";

/** What the schedules start (schedules.ts). */
const SCHEDULED: readonly FunctionName[] = ["bridge", "sweep", "cards"];

/** A work function that one agent has for itself. */
export interface OwnFunction {
  readonly queue: AgentQueue;
  readonly config: AgentFunction;
}

export interface SluiceFunctionProps {
  /** Which of the functions it is. */
  readonly kind: FunctionName;
  readonly description: string;
  /** The folder of its bundle. */
  readonly folder: string;
  readonly parts: Parts;
  readonly own?: OwnFunction;
}

/** Which queue a function consumes, and how. */
interface Source {
  readonly pair: QueuePair;
  readonly batchSize: number;
  /** How many invocations run at once at the most. */
  readonly maxConcurrency: number;
}

/** A function with its role, its logs and the queue that it consumes. */
export class SluiceFunction extends Construct {
  readonly kind: FunctionName;
  readonly function: LambdaFunction;
  readonly logGroup: LogGroup;
  readonly size: FunctionSize;

  constructor(scope: Construct, id: string, props: SluiceFunctionProps) {
    super(scope, id);
    const { kind, parts, own } = props;
    this.kind = kind;
    this.size = own?.config ?? FUNCTION_SIZES[kind];
    this.logGroup = forgettingLogs(this, "Logs", parts.logRetentionDays);
    const source = sourceOf(props);
    const { role, policy } = this.#role(props, source);
    const environment = environmentOf(this, kind, parts, own?.queue);
    this.function = new LambdaFunction(this, "Default", {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: "index.handler",
      code: Code.fromAsset(props.folder),
      memorySize: this.size.memoryMb,
      timeout: Duration.seconds(this.size.timeoutSec),
      environment,
      tracing: Tracing.ACTIVE,
      // Whatever CDK would add is there already.
      role: role.withoutPolicyUpdates(),
      logGroup: this.logGroup,
      ...(parts.placement !== undefined && {
        vpc: parts.placement.vpc,
        vpcSubnets: parts.placement.subnets,
        securityGroups: [...parts.placement.securityGroups],
      }),
      ...(kind === "bridge" && { reservedConcurrentExecutions: BRIDGE_CONCURRENCY }),
      // The schedule starts the next run anyway; a run of the past is of no use to anybody.
      ...(SCHEDULED.includes(kind) && { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
    });
    const denials = parts.placement === undefined ? [] : [this.#keepFromInterfaces(role)];
    keepWithinQuotas(this, {
      field: own === undefined ? "remotes" : `agents.${own.queue.agentId}.function`,
      policies: [policy, ...denials],
      environment,
    });
    if (source !== undefined) this.#consume(source);
  }

  /** A role of its own, for AWS's managed one may write to every log group. */
  #role({ kind, parts, own }: SluiceFunctionProps, source: Source | undefined) {
    const logs = new PolicyStatement({
      actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
      resources: [this.logGroup.logGroupArn],
    });
    const statements = [
      logs,
      new PolicyStatement({ actions: TRACES, resources: ["*"] }),
      ...(parts.placement === undefined ? [] : [new PolicyStatement({ actions: IN_VPC, resources: ["*"] })]),
      ...statementsFor(this, { name: kind, parts, consumes: source?.pair, own: own?.queue }),
      ...(own === undefined ? [] : ownStatements(this, own.config)),
    ];
    const policy = new PolicyDocument({ statements });
    const role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: { sluice: policy },
    });
    acknowledgeWildcards(role, { name: kind, parts, own: own?.config });
    return { role, policy };
  }

  /**
   * Lambda makes the network interfaces in the role's name; the function's own code has no business with them (Lambda
   * Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC", security best practices).
   */
  #keepFromInterfaces(role: Role): PolicyDocument {
    return new Policy(this, "NoInterfaces", {
      roles: [role],
      statements: [
        new PolicyStatement({
          effect: Effect.DENY,
          actions: IN_VPC,
          resources: ["*"],
          conditions: { ArnEquals: { "lambda:SourceFunctionArn": this.function.functionArn } },
        }),
      ],
    }).document;
  }

  #consume({ pair, batchSize, maxConcurrency }: Source): void {
    new EventSourceMapping(this, "Source", {
      target: this.function,
      eventSourceArn: pair.queue.queueArn,
      batchSize,
      maxConcurrency,
      reportBatchItemFailures: true,
    });
  }
}

function sourceOf({ kind, parts, own }: SluiceFunctionProps): Source | undefined {
  if (own !== undefined) return { pair: own.queue.pair, ...own.config };
  const name = QUEUE_NAMES.find((queue) => CONSUMPTION[queue].consumer === kind);
  return name === undefined ? undefined : { pair: parts.queues[name], ...CONSUMPTION[name] };
}
