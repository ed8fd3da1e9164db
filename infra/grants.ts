import type { Table } from "aws-cdk-lib/aws-dynamodb";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { FunctionName } from "./bundle.ts";
import type { Queues } from "./queues.ts";
import type { QueueName } from "./sizes.ts";
import { DUE_INDEX, type Storage, VALUES_PREFIX } from "./storage.ts";

/** What ending a task and handing its slot on asks for (shared/tasks/dynamodb-slots.ts). */
const LEAVES = ["ConditionCheckItem", "DeleteItem", "GetItem", "Query", "UpdateItem"];

/** What a function may do; nothing that it does not use. */
interface Grant {
  readonly table?: readonly string[];
  /** Reads the index of what is due. */
  readonly dueIndex?: boolean;
  /** On objects below `values/`. */
  readonly values?: readonly string[];
  readonly sends?: readonly QueueName[];
  /** Queues whose depth it looks at. */
  readonly measures?: readonly QueueName[];
  /** Queues that Lambda polls in its name. */
  readonly consumes?: readonly QueueName[];
}

/** Where the bridge puts what it pulls. */
const FORWARDED = ["tasks", "controls", "events"] as const;

const GRANTS: Readonly<Record<FunctionName, Grant>> = {
  bridge: { sends: FORWARDED, measures: FORWARDED },
  admit: {
    table: ["GetItem", "PutItem", "Query"],
    values: ["GetObject", "PutObject"],
    sends: ["work"],
    consumes: ["tasks"],
  },
  control: {
    table: [...LEAVES, "PutItem"],
    values: ["GetObject", "PutObject"],
    sends: ["work"],
    consumes: ["controls"],
  },
  events: {
    table: ["GetItem", "PutItem", "UpdateItem", "Query"],
    values: ["GetObject", "PutObject"],
    sends: ["work"],
    consumes: ["events"],
  },
  work: {
    table: [...LEAVES, "PutItem"],
    values: ["GetObject", "PutObject"],
    sends: ["work"],
    consumes: ["work"],
  },
  sweep: {
    table: [...LEAVES, "BatchGetItem"],
    dueIndex: true,
    values: ["GetObject"],
    sends: ["work"],
  },
};

/** What Lambda needs to poll a queue (Lambda Developer Guide, "Create an SQS event source mapping"). */
const CONSUME = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

/** The statements for a function's role, over exactly the resources that it works on. */
export function statementsFor(name: FunctionName, storage: Storage, queues: Queues): PolicyStatement[] {
  const grant = GRANTS[name];
  const arns = (names: readonly QueueName[] | undefined) =>
    (names ?? []).map((queue) => queues[queue].queue.queueArn);
  const allowed = [
    { actions: prefixed("dynamodb", grant.table), resources: [storage.table.tableArn] },
    { actions: grant.dueIndex ? ["dynamodb:Query"] : [], resources: [indexArn(storage.table)] },
    { actions: prefixed("s3", grant.values), resources: [storage.bucket.arnForObjects(`${VALUES_PREFIX}*`)] },
    // Without it S3 says "access denied" of an object that is not there (Amazon S3 API Reference, GetObject).
    { actions: grant.values ? ["s3:ListBucket"] : [], resources: [storage.bucket.bucketArn] },
    { actions: ["sqs:SendMessage"], resources: arns(grant.sends) },
    { actions: ["sqs:GetQueueAttributes"], resources: arns(grant.measures) },
    { actions: CONSUME, resources: arns(grant.consumes) },
  ];
  return allowed
    .filter(({ actions, resources }) => actions.length > 0 && resources.length > 0)
    .map((of) => new PolicyStatement(of));
}

/** Whether a function may touch the objects below `values/`. */
export function usesValues(name: FunctionName): boolean {
  return GRANTS[name].values !== undefined;
}

function prefixed(service: string, actions: readonly string[] = []): string[] {
  return actions.map((action) => `${service}:${action}`);
}

function indexArn(table: Table): string {
  return `${table.tableArn}/index/${DUE_INDEX}`;
}
