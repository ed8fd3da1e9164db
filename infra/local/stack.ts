import * as z from "zod";
import { HostError } from "./errors.ts";
import { resolveIntrinsics } from "./intrinsics.ts";
import { arnOf, nameOf, scopeOf } from "./names.ts";
import { type Assembly, readAssembly } from "./template.ts";

/** What a stack declares, as far as one machine can run it: names resolved, values in their declared units. */
export interface Stack {
  readonly name: string;
  readonly tables: readonly TableDeclaration[];
  readonly queues: readonly QueueDeclaration[];
  readonly buckets: readonly string[];
  readonly functions: readonly FunctionDeclaration[];
  readonly mappings: readonly MappingDeclaration[];
  readonly schedules: readonly ScheduleDeclaration[];
  /** The outputs, as CloudFormation would give them. */
  readonly outputs: Readonly<Record<string, string>>;
}

export interface TableDeclaration {
  readonly name: string;
  /** The resource's properties, which are those of DynamoDB's CreateTable. */
  readonly properties: unknown;
}

export interface QueueDeclaration {
  readonly name: string;
  readonly arn: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly arn: string;
  readonly handler: string;
  /** The folder of its bundle. */
  readonly codeDir: string;
  readonly timeoutSec: number;
  readonly memoryMb: number;
  readonly reservedConcurrency: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
  /** How often an asynchronous invocation that failed is tried again. */
  readonly asyncRetries: number;
}

export interface MappingDeclaration {
  readonly functionName: string;
  readonly queueName: string;
  readonly queueArn: string;
  readonly batchSize: number;
  readonly maximumConcurrency: number | undefined;
  readonly reportBatchItemFailures: boolean;
}

export interface ScheduleDeclaration {
  readonly name: string;
  readonly arn: string;
  readonly functionName: string;
  /** How often the function is tried again for the same event. */
  readonly retries: number;
  readonly periodSec: number;
  /** The event as declared; undefined means EventBridge's own scheduled event. */
  readonly input: unknown;
}

const text = z.string();
const whole = z.coerce.number().int();

const functionProperties = z.object({
  Handler: text,
  Runtime: z
    .string()
    .regex(/^nodejs/)
    .optional(),
  Code: z.object({ S3Key: text.optional() }),
  Timeout: whole.default(3),
  MemorySize: whole.default(128),
  ReservedConcurrentExecutions: whole.optional(),
  Environment: z
    .object({ Variables: z.record(text, z.coerce.string()).default({}) })
    .default({ Variables: {} }),
});

const mappingProperties = z.object({
  FunctionName: text,
  EventSourceArn: text,
  BatchSize: whole.default(10),
  Enabled: z.boolean().default(true),
  ScalingConfig: z.object({ MaximumConcurrency: whole.optional() }).default({}),
  FunctionResponseTypes: z.array(text).default([]),
  FilterCriteria: z.undefined("filters are not supported by the local host").optional(),
});

const target = z.object({ Arn: text, Input: text.optional() });
const ruleProperties = z.object({
  ScheduleExpression: text.optional(),
  State: text.default("ENABLED"),
  Targets: z.array(target).default([]),
});
const scheduleProperties = z.object({
  ScheduleExpression: text,
  State: text.default("ENABLED"),
  Target: target,
});

const invokeConfigProperties = z.object({ FunctionName: text, MaximumRetryAttempts: whole.optional() });
/** AWS Lambda: "Configuring error handling settings for asynchronous invocation". */
const DEFAULT_ASYNC_RETRIES = 2;

const QUEUE_ATTRIBUTES = [
  "DelaySeconds",
  "MaximumMessageSize",
  "MessageRetentionPeriod",
  "ReceiveMessageWaitTimeSeconds",
  "RedrivePolicy",
  "VisibilityTimeout",
] as const;

/**
 * Reads what the one stack of a cloud assembly declares.
 *
 * @param assemblyDir the folder that `cdk synth` wrote
 * @param queueUrlBase what a queue's URL begins with, such as `http://127.0.0.1:4566/000000000000`
 * @throws HostError `assembly_invalid` or `unsupported`, naming the resource and the property
 */
export function readStack(assemblyDir: string, queueUrlBase: string): Stack {
  return declarations(readAssembly(assemblyDir), queueUrlBase);
}

function declarations(assembly: Assembly, queueUrlBase: string): Stack {
  const scope = scopeOf(assembly, queueUrlBase);
  const of = <T>(type: string, make: (name: string, id: string) => T): T[] =>
    Object.entries(assembly.template.Resources)
      .filter(([, resource]) => resource.Type === type)
      .map(([id]) => make(nameOf(assembly, id), id));
  const raw = (id: string) => resolveIntrinsics(assembly.template.Resources[id]?.Properties, scope, id);
  const parsed = <T>(id: string, schema: z.ZodType<T>): T => {
    const result = schema.safeParse(raw(id));
    if (result.success) return result.data;
    throw new HostError("assembly_invalid", `template: ${id}: ${z.prettifyError(result.error)}`);
  };

  const asyncRetries = new Map(
    of("AWS::Lambda::EventInvokeConfig", (_, id) => parsed(id, invokeConfigProperties)).map((config) => [
      config.FunctionName,
      config.MaximumRetryAttempts,
    ]),
  );
  const functions = of("AWS::Lambda::Function", (name, id): FunctionDeclaration | null => {
    // CDK's own helpers (custom resources) are never invoked locally, whatever runtime they have.
    const result = functionProperties.safeParse(raw(id));
    if (!result.success) return null;
    const p = result.data;
    return {
      name,
      arn: arnOf("AWS::Lambda::Function", name),
      handler: p.Handler,
      codeDir: assembly.assets.get(p.Code.S3Key ?? "") ?? "",
      timeoutSec: p.Timeout,
      memoryMb: p.MemorySize,
      reservedConcurrency: p.ReservedConcurrentExecutions,
      environment: p.Environment.Variables,
      asyncRetries: asyncRetries.get(name) ?? DEFAULT_ASYNC_RETRIES,
    };
  }).filter((f) => f !== null);
  const functionNamed = (reference: string, where: string): FunctionDeclaration => {
    const found = functions.find((f) => f.name === reference || f.arn === reference);
    if (found === undefined || found.codeDir === "")
      throw new HostError(
        "assembly_invalid",
        `template: ${where}: ${reference} is no Node.js function with an asset`,
      );
    return found;
  };

  const queues = of("AWS::SQS::Queue", (name, id): QueueDeclaration => {
    const properties = parsed(id, z.record(z.string(), z.unknown()));
    const attributes = QUEUE_ATTRIBUTES.flatMap((key) => {
      const value = properties[key];
      return value === undefined
        ? []
        : [[key, typeof value === "object" ? JSON.stringify(value) : String(value)]];
    });
    return { name, arn: arnOf("AWS::SQS::Queue", name), attributes: Object.fromEntries(attributes) };
  });

  const mappings = of("AWS::Lambda::EventSourceMapping", (_, id): MappingDeclaration[] => {
    const p = parsed(id, mappingProperties);
    const queue = queues.find((q) => q.arn === p.EventSourceArn);
    if (queue === undefined)
      throw new HostError(
        "unsupported",
        `template: ${id}: EventSourceArn ${p.EventSourceArn} is no queue of the stack`,
      );
    const mapping = {
      functionName: functionNamed(p.FunctionName, id).name,
      queueName: queue.name,
      queueArn: queue.arn,
      batchSize: p.BatchSize,
      maximumConcurrency: p.ScalingConfig.MaximumConcurrency,
      reportBatchItemFailures: p.FunctionResponseTypes.includes("ReportBatchItemFailures"),
    };
    return p.Enabled ? [mapping] : [];
  }).flat();

  const schedule = (name: string, arn: string, id: string, rate: string, to: z.infer<typeof target>) => {
    const { name: functionName, asyncRetries: retries } = functionNamed(to.Arn, id);
    const input: unknown = to.Input === undefined ? undefined : JSON.parse(to.Input);
    return { name, arn, functionName, retries, periodSec: periodOf(rate, id), input };
  };
  const rules = of("AWS::Events::Rule", (name, id): ScheduleDeclaration[] => {
    const { ScheduleExpression: rate, State, Targets } = parsed(id, ruleProperties);
    if (rate === undefined || State !== "ENABLED") return [];
    return Targets.map((to) => schedule(name, arnOf("AWS::Events::Rule", name), id, rate, to));
  }).flat();
  const scheduled = of("AWS::Scheduler::Schedule", (name, id): ScheduleDeclaration[] => {
    const { ScheduleExpression: rate, State, Target } = parsed(id, scheduleProperties);
    if (State !== "ENABLED") return [];
    return [schedule(name, arnOf("AWS::Scheduler::Schedule", name), id, rate, Target)];
  }).flat();

  const outputs = Object.entries(assembly.template.Outputs).map(([id, { Value }]) => [
    id,
    text.parse(resolveIntrinsics(Value, scope, `Outputs.${id}`)),
  ]);

  return {
    name: assembly.stackName,
    tables: of("AWS::DynamoDB::Table", (name, id) => ({ name, properties: raw(id) })),
    queues,
    buckets: of("AWS::S3::Bucket", (name) => name),
    functions,
    mappings,
    schedules: [...rules, ...scheduled],
    outputs: Object.fromEntries(outputs),
  };
}

const UNIT_SECONDS: Record<string, number> = { minute: 60, hour: 3_600, day: 86_400 };

function periodOf(expression: string, id: string): number {
  const [, count, unit] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression) ?? [];
  if (count === undefined || unit === undefined)
    throw new HostError(
      "unsupported",
      `template: ${id}: ScheduleExpression ${JSON.stringify(expression)}: the local host knows rate(N minutes|hours|days)`,
    );
  return Number(count) * (UNIT_SECONDS[unit] ?? 60);
}
