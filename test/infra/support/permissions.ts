import * as z from "zod";
import { VALUES_PREFIX } from "../../../infra/storage.ts";
import type { Call } from "./calls.ts";

/** A permission: an action, and the resource as {@link named} calls it, such as `sqs:SendMessage Work1A2B3C4D`. */
export type Permission = string;

/**
 * What Lambda needs to hand on traces, and to put a function into a VPC (Lambda Developer Guide, "Visualize Lambda function
 * invocations using AWS X-Ray"; "Giving Lambda functions access to resources in an Amazon VPC", required permissions). Not
 * the lists that the roles are made with: what one of these lacks would be missed by nobody.
 */
const TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"];
const IN_VPC = [
  ...["CreateNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "DeleteNetworkInterface"],
  ...["AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"],
].map((action) => `ec2:${action}`);

const statement = z
  .object({
    Action: z.union([z.string(), z.array(z.string())]).transform((of) => [of].flat()),
    Effect: z.enum(["Allow", "Deny"]),
    Resource: z.unknown().transform((of) => [of].flat()),
    Condition: z.unknown().optional(),
  })
  .refine(({ Effect, Condition }) => Effect === "Deny" || Condition === undefined, {
    error: "expected no condition: what is allowed by one is not always allowed",
  });
const document = z.object({ Statement: z.array(statement) });
const role = z.object({
  ManagedPolicyArns: z.undefined("expected no managed policy").optional(),
  Policies: z.array(z.object({ PolicyDocument: document })).default([]),
});
const policy = z.object({ PolicyDocument: document, Roles: z.array(z.unknown()).default([]) });
const ofFunction = z.strictObject({
  ArnEquals: z.strictObject({ "lambda:SourceFunctionArn": z.unknown() }),
});
const variables = z.record(z.string(), z.unknown());
const lambda = z.object({
  Role: z.unknown(),
  Environment: z.object({ Variables: variables }),
  LoggingConfig: z.object({ LogGroup: z.unknown() }).optional(),
  TracingConfig: z.object({ Mode: z.string() }).optional(),
  VpcConfig: z.unknown().optional(),
});
const mapping = z.object({ FunctionName: z.unknown(), EventSourceArn: z.unknown() });
const task = z.object({
  TaskRoleArn: z.unknown(),
  ContainerDefinitions: z.tuple([
    z.object({ Environment: z.array(z.object({ Name: z.string(), Value: z.unknown() })) }),
  ]),
});
const table = z.object({ GlobalSecondaryIndexes: z.array(z.object({ IndexName: z.string() })).default([]) });

/** A template as CDK makes it. */
export const templateOf = z.object({
  Resources: z.record(z.string(), z.object({ Type: z.string(), Properties: variables.default({}) })),
});
export type Template = z.infer<typeof templateOf>;

/** What runs our code: a function or a container, with what its declaration itself asks for. */
export interface Program {
  /** Its logical id. */
  readonly id: string;
  /** That of its role. */
  readonly role: string;
  readonly environment: Readonly<Record<string, unknown>>;
  /** What AWS does in its name because of how it is declared. */
  readonly declared: readonly Permission[];
  /** What of that its own code may not do, sorted. */
  readonly denied: readonly Permission[];
}

/** The programs of a template. */
export function programsOf(template: Template): Program[] {
  return [
    ...ofType(template, "AWS::Lambda::Function", lambda).map(([id, of]) => ({
      id,
      role: named(of.Role),
      environment: of.Environment.Variables,
      declared: declaredBy(template, id, of),
      denied: of.VpcConfig === undefined ? [] : pairs(IN_VPC, ["*"]).toSorted(),
    })),
    ...ofType(template, "AWS::ECS::TaskDefinition", task).map(([id, of]) => ({
      id,
      role: named(of.TaskRoleArn),
      environment: Object.fromEntries(
        of.ContainerDefinitions[0].Environment.map(({ Name, Value }) => [Name, Value]),
      ),
      declared: [],
      denied: [],
    })),
  ];
}

function declaredBy(template: Template, id: string, of: z.infer<typeof lambda>): Permission[] {
  const sources = ofType(template, "AWS::Lambda::EventSourceMapping", mapping)
    .filter(([, { FunctionName }]) => named(FunctionName) === id)
    .map(([, { EventSourceArn }]) => named(EventSourceArn));
  return [
    // Lambda Developer Guide: "Create an SQS event source mapping", "Sending function logs to CloudWatch Logs".
    ...pairs(["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], sources),
    ...pairs(["logs:CreateLogStream", "logs:PutLogEvents"], [named(of.LoggingConfig?.LogGroup)]),
    ...(of.TracingConfig?.Mode === "Active" ? pairs(TRACES, ["*"]) : []),
    ...(of.VpcConfig === undefined ? [] : pairs(IN_VPC, ["*"])),
  ];
}

/** The roles that no program has: those of AWS's own services. */
export function otherRoles(template: Template, programs: readonly Program[]): string[] {
  const theirs = new Set(programs.map((of) => of.role));
  return ofType(template, "AWS::IAM::Role", role)
    .map(([id]) => id)
    .filter((id) => !theirs.has(id));
}

/** What a program needs: for what it is declared to be, and for calls. */
export function neededBy(template: Template, program: Program, calls: readonly Call[]): Set<Permission> {
  const called = calls.flatMap((call) => {
    const [action = "", target = ""] = call.split(" ");
    return pairs([action], resourcesFor(template, program.environment, target));
  });
  return new Set([...program.declared, ...called]);
}

function resourcesFor(template: Template, environment: Program["environment"], target: string): string[] {
  switch (target) {
    case "table":
      return [named(environment.TABLE_NAME)];
    case "index":
      return ofType(template, "AWS::DynamoDB::Table", table).flatMap(([id, of]) =>
        of.GlobalSecondaryIndexes.map(({ IndexName }) => `${id}/index/${IndexName}`),
      );
    case "values":
      return [`${named(environment.BUCKET_NAME)}/${VALUES_PREFIX}*`];
    case "bucket":
      return [named(environment.BUCKET_NAME)];
    case "queue":
      return Object.values(environment).flatMap((of) => queuesIn(template, of));
    case "secret": {
      const secret = /^secret:(.*)$/.exec(String(environment.NATS_CREDENTIALS ?? ""))?.[1];
      return [
        ...(secret === undefined ? [] : [SECRET + secret]),
        ...resourcesFor(template, environment, "key"),
      ];
    }
    case "key":
      return environment.SIGNING_KEY_SECRET === undefined ? [] : [named(environment.SIGNING_KEY_SECRET)];
    default:
      throw new Error(`a call on a ${target}`);
  }
}

const SECRET = "arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:";

/** The queues that a variable speaks of. */
function queuesIn(template: Template, value: unknown): string[] {
  const refs = JSON.stringify(value).matchAll(/\{"Ref":"(\w+)"\}/g);
  return Array.from(refs, ([, id = ""]) => id).filter(
    (id) => template.Resources[id]?.Type === "AWS::SQS::Queue",
  );
}

/** What a role allows. */
export function allowedBy(template: Template, roleId: string): Set<Permission> {
  return new Set(
    statementsOf(template, roleId)
      .filter(({ Effect }) => Effect === "Allow")
      .flatMap(({ Action, Resource }) => pairs(Action, Resource.map(named))),
  );
}

/** What a role denies to its program's own code, and to nobody else who acts in its name; sorted. */
export function deniedTo(template: Template, { id, role: roleId }: Program): Permission[] {
  return statementsOf(template, roleId)
    .filter(({ Effect }) => Effect === "Deny")
    .flatMap(({ Action, Resource, Condition }) => {
      const whose = named(ofFunction.parse(Condition).ArnEquals["lambda:SourceFunctionArn"]);
      if (whose !== id) throw new Error(`${roleId} denies something to ${whose}`);
      return pairs(Action, Resource.map(named));
    })
    .toSorted();
}

/** What a role's own policies say, and those that are attached to it. */
function statementsOf(template: Template, roleId: string): z.infer<typeof statement>[] {
  const own = role.parse(template.Resources[roleId]?.Properties).Policies;
  const further = ATTACHED.flatMap((type) => ofType(template, type, policy));
  const attached = further
    .filter(([, { Roles }]) => Roles.some((of) => named(of) === roleId))
    .map(([, of]) => of);
  return [...own, ...attached].flatMap((of) => of.PolicyDocument.Statement);
}
const ATTACHED = ["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"];

/** One permission as the statement that allows it alone. */
export interface Single {
  readonly permission: Permission;
  readonly statement: object;
}

/** A template in which a role says one permission at a time what it allows, as far as it still does. */
export function changed(
  template: Template,
  roleId: string,
  change: (all: readonly Single[]) => readonly Single[],
): Template {
  const { Policies } = role.parse(template.Resources[roleId]?.Properties);
  const singles = Policies.flatMap((of) => of.PolicyDocument.Statement).flatMap(
    ({ Effect, Action, Resource }) =>
      Resource.flatMap((resource) =>
        Action.map((action) => ({
          permission: `${action} ${named(resource)}`,
          statement: { Effect, Action: action, Resource: resource },
        })),
      ),
  );
  const Statement = change(singles).map(({ statement }) => statement);
  const Properties = { Policies: [{ PolicyDocument: { Statement } }] };
  return { Resources: { ...template.Resources, [roleId]: { Type: "AWS::IAM::Role", Properties } } };
}

/** What is wrong with what a program may do, sorted. */
export function findings(needed: ReadonlySet<Permission>, allowed: ReadonlySet<Permission>): string[] {
  return [
    ...[...needed].filter((of) => !allowed.has(of)).map((of) => `missing: ${of}`),
    ...[...allowed].filter((of) => !needed.has(of)).map((of) => `unused: ${of}`),
  ].toSorted();
}

function pairs(actions: readonly string[], resources: readonly string[]): Permission[] {
  return resources.flatMap((resource) => actions.map((action) => `${action} ${resource}`));
}

/** A value of a template as text: a resource is its logical id, whether by name or by ARN. */
function named(value: unknown): string {
  if (typeof value === "string") return value.replace(/(:secret:.*)-\?{6}$/, "$1");
  const [[name, of] = []] = Object.entries(Object(value));
  if (name === "Ref") return String(of);
  if (name === "Fn::Sub") return String(of).replaceAll(/\$\{([\w:]+)\}/g, "$1");
  if (name === "Fn::GetAtt" && Array.isArray(of) && of[1] === "Arn") return String(of[0]);
  if (name === "Fn::Join" && Array.isArray(of) && Array.isArray(of[1]))
    return named(of[1].map(named).join(String(of[0])));
  throw new Error(`expected the name or the ARN of a resource, got ${JSON.stringify(value)}`);
}

function ofType<T>({ Resources }: Template, type: string, schema: z.ZodType<T>): [string, T][] {
  return Object.entries(Resources)
    .filter(([, of]) => of.Type === type)
    .map(([id, { Properties }]) => [id, schema.parse(Properties)]);
}
