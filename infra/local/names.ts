import { ACCOUNT, REGION, type Scope } from "./intrinsics.ts";
import type { Assembly } from "./template.ts";

const NAME_PROPERTIES: Record<string, string> = {
  "AWS::SQS::Queue": "QueueName",
  "AWS::DynamoDB::Table": "TableName",
  "AWS::S3::Bucket": "BucketName",
  "AWS::Lambda::Function": "FunctionName",
  "AWS::Events::Rule": "Name",
  "AWS::Scheduler::Schedule": "Name",
};

/** Parts of a construct's path that only say what kind of thing it is. */
const KINDS = new Set([
  "Default",
  "Function",
  "Functions",
  "Queue",
  "Queues",
  "Resource",
  "Schedules",
  "Storage",
]);

/**
 * A resource's physical name: the declared one if it is a plain text, else made of the construct's path, so that it
 * is the same at each start (`Queues/TasksDead/Resource` → `tasks-dead`).
 */
export function nameOf(assembly: Assembly, id: string): string {
  const resource = assembly.template.Resources[id];
  const declared = resource?.Properties[NAME_PROPERTIES[resource.Type] ?? ""];
  if (typeof declared === "string") return declared;
  const path = (assembly.pathOf.get(id) ?? id).split("/");
  const telling = path.filter((part) => !KINDS.has(part));
  return (telling.length > 0 ? telling : path)
    .map((part) => part.replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase())
    .join("-");
}

const ARNS: Record<string, (name: string) => string> = {
  "AWS::SQS::Queue": (name) => `arn:aws:sqs:${REGION}:${ACCOUNT}:${name}`,
  "AWS::DynamoDB::Table": (name) => `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${name}`,
  "AWS::S3::Bucket": (name) => `arn:aws:s3:::${name}`,
  "AWS::Lambda::Function": (name) => `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`,
  "AWS::Events::Rule": (name) => `arn:aws:events:${REGION}:${ACCOUNT}:rule/${name}`,
  "AWS::Scheduler::Schedule": (name) => `arn:aws:scheduler:${REGION}:${ACCOUNT}:schedule/default/${name}`,
};

/** The ARN of a resource on this machine. */
export function arnOf(type: string, name: string): string {
  // Roles, keys, log groups: nothing here acts on them, but other resources name them.
  return (
    ARNS[type]?.(name) ?? `arn:aws:local:${REGION}:${ACCOUNT}:${type.split("::").slice(1).join("/")}/${name}`
  );
}

/** What the intrinsic functions of an assembly's template refer to. */
export function scopeOf(assembly: Assembly, queueUrlBase: string): Scope {
  const pseudo: Record<string, string> = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${assembly.stackName}/local`,
    "AWS::StackName": assembly.stackName,
    "AWS::URLSuffix": "amazonaws.com",
  };
  const { Resources, Parameters } = assembly.template;
  return {
    ref(name) {
      if (name in pseudo) return pseudo[name];
      const type = Resources[name]?.Type;
      if (type === undefined) return Parameters[name]?.Default;
      return type === "AWS::SQS::Queue"
        ? `${queueUrlBase}/${nameOf(assembly, name)}`
        : nameOf(assembly, name);
    },
    attribute(id, attribute) {
      const type = Resources[id]?.Type;
      if (type === undefined) return undefined;
      if (attribute === "Arn") return arnOf(type, nameOf(assembly, id));
      if (attribute === "QueueName") return nameOf(assembly, id);
      if (attribute === "QueueUrl") return `${queueUrlBase}/${nameOf(assembly, id)}`;
      return `local-${id}-${attribute}`;
    },
  };
}
