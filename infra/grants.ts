import { Validations } from "aws-cdk-lib";
import type { Table } from "aws-cdk-lib/aws-dynamodb";
import { PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import type { AgentFunction } from "../shared/config/cloud.ts";
import { credentialsFor } from "./asked-remotes.ts";
import type { FunctionName } from "./bundle.ts";
import { natsSecret, type Parts, secretArn } from "./parts.ts";
import type { AgentQueue, QueuePair } from "./queues.ts";
import { DUE_INDEX, VALUES_PREFIX } from "./storage.ts";

/** What ending a task and handing its slot on asks for (shared/tasks/dynamodb-slots.ts). */
const LEAVES = ["ConditionCheckItem", "DeleteItem", "GetItem", "Query", "UpdateItem"];

/** How an agent stands is read in one request (shared/policy/dynamodb-standing.ts). */
const READS_POLICIES = "BatchGetItem";

/** What a function may do besides receiving its own queue's messages; nothing that it does not use. */
interface Grant {
  readonly table?: readonly string[];
  /** Reads the index of what is due. */
  readonly dueIndex?: boolean;
  /** On objects below `values/`. */
  readonly values?: readonly string[];
  /** Puts hints on the agents' queues. */
  readonly hints?: boolean;
  /** Puts what it pulls on the queues for it, and looks at their depth. */
  readonly forwards?: boolean;
  /** Signs cards, and makes the key if there is none. */
  readonly signs?: boolean;
}

const GRANTS: Readonly<Record<FunctionName, Grant>> = {
  bridge: { forwards: true },
  admit: {
    table: [READS_POLICIES, "DeleteItem", "GetItem", "PutItem", "Query"],
    values: ["GetObject", "PutObject"],
    hints: true,
  },
  control: { table: [...LEAVES, READS_POLICIES, "PutItem"], values: ["GetObject", "PutObject"], hints: true },
  events: {
    table: [READS_POLICIES, "GetItem", "PutItem", "UpdateItem", "Query"],
    values: ["GetObject", "PutObject"],
    hints: true,
  },
  work: { table: [...LEAVES, READS_POLICIES, "PutItem"], values: ["GetObject", "PutObject"], hints: true },
  sweep: { table: [...LEAVES, "BatchGetItem"], dueIndex: true, values: ["GetObject"], hints: true },
  cards: {
    table: ["BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"],
    signs: true,
  },
};

/** What Lambda needs to poll a queue (Lambda Developer Guide, "Create an SQS event source mapping"). */
const CONSUME = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
/** What Lambda needs to hand on traces; there is no resource to name (Service Authorization Reference, X-Ray). */
export const TRACES = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"];
/** What Lambda needs to put a function into a VPC (Lambda Developer Guide, "Required IAM permissions"). */
export const IN_VPC = [
  "ec2:CreateNetworkInterface",
  "ec2:DescribeNetworkInterfaces",
  "ec2:DescribeSubnets",
  "ec2:DeleteNetworkInterface",
  "ec2:AssignPrivateIpAddresses",
  "ec2:UnassignPrivateIpAddresses",
];

/** Of what a function is to be granted its part. */
export interface Granted {
  readonly name: FunctionName;
  readonly parts: Parts;
  /** The queue that Lambda polls in its name. */
  readonly consumes?: QueuePair | undefined;
  /** The agent's queue, for a work function of its own. */
  readonly own?: AgentQueue | undefined;
}

/** The statements for a role, over exactly the resources that the function works on. */
export function statementsFor(scope: Construct, { name, parts, consumes, own }: Granted): PolicyStatement[] {
  const grant = GRANTS[name];
  const { storage, queues, nats, signingKey } = parts;
  const hinted = own === undefined ? [queues.work, ...queues.own.map(({ pair }) => pair)] : [own.pair];
  const forwarded = grant.forwards ? [queues.tasks, queues.controls, queues.events] : [];
  const secrets = [natsSecret(nats) ?? [], credentialsFor(name, parts, own).secrets].flat();
  const allowed = [
    { actions: prefixed("dynamodb", grant.table), resources: [storage.table.tableArn] },
    { actions: grant.dueIndex ? ["dynamodb:Query"] : [], resources: [indexArn(storage.table)] },
    { actions: prefixed("s3", grant.values), resources: [storage.bucket.arnForObjects(`${VALUES_PREFIX}*`)] },
    // Without it S3 says "access denied" of an object that is not there (Amazon S3 API Reference, GetObject).
    { actions: grant.values ? ["s3:ListBucket"] : [], resources: [storage.bucket.bucketArn] },
    { actions: ["sqs:SendMessage"], resources: arns([...forwarded, ...(grant.hints ? hinted : [])]) },
    { actions: ["sqs:GetQueueAttributes"], resources: arns(forwarded) },
    { actions: CONSUME, resources: arns(consumes === undefined ? [] : [consumes]) },
    { actions: READ_SECRET, resources: [...new Set(secrets)].map((of) => secretArn(scope, of)) },
    {
      actions: grant.signs ? [...READ_SECRET, "secretsmanager:PutSecretValue"] : [],
      resources: [signingKey.arn],
    },
  ];
  return allowed
    .filter(({ actions, resources }) => actions.length > 0 && resources.length > 0)
    .map((of) => new PolicyStatement(of));
}

const READ_SECRET = ["secretsmanager:GetSecretValue"];

/** What the operator grants an agent's own work function. */
export function ownStatements(
  scope: Construct,
  { secrets, permissions }: Pick<AgentFunction, "secrets" | "permissions">,
): PolicyStatement[] {
  const reads = secrets.map((name) => secretArn(scope, name));
  return [
    ...(reads.length > 0 ? [new PolicyStatement({ actions: READ_SECRET, resources: reads })] : []),
    ...permissions.map((of) => new PolicyStatement(of)),
  ];
}

/** Says of each resource with a wildcard why it has no alternative. */
export function acknowledgeWildcards(
  role: Role,
  { name, parts, own }: { name: FunctionName; parts: Parts; own?: AgentFunction | undefined },
): void {
  const acknowledge = (resource: string, reason: string) =>
    Validations.of(role).acknowledge({ id: `AwsSolutions-IAM5[Resource::${resource}]`, reason });
  acknowledge("*", "X-Ray's actions know no resource, nor do those by which Lambda joins a VPC.");
  if (GRANTS[name].values !== undefined)
    acknowledge(
      `<${parts.storage.bucketLogicalId}.Arn>/${VALUES_PREFIX}*`,
      "The keys below values/ are known only when a value is written.",
    );
  for (const resource of new Set(own?.permissions.flatMap((of) => of.resources)))
    if (resource !== "*" && resource.includes("*"))
      acknowledge(resource, "The operator grants it to this agent alone (agents.yaml).");
}

function arns(pairs: readonly QueuePair[]): string[] {
  return pairs.map(({ queue }) => queue.queueArn);
}

function prefixed(service: string, actions: readonly string[] = []): string[] {
  return actions.map((action) => `${service}:${action}`);
}

function indexArn(table: Table): string {
  return `${table.tableArn}/index/${DUE_INDEX}`;
}
