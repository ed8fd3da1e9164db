import type { FunctionConfiguration } from "@aws-sdk/client-lambda";
import type { Resource } from "../deployed.ts";
import { AWS_CLIENT } from "../place.ts";
import { cleanLine } from "../text.ts";
import { examine, type Finding, isMissing, ok, ownFunctions, warning, wrong } from "./finding.ts";

const DEPLOY = "deploy the stack again";

/** Looks at a deployed stack's functions and at what starts them with messages. */
export async function checkFunctions(resources: readonly Resource[]): Promise<readonly Finding[]> {
  const {
    GetEventSourceMappingCommand,
    GetFunctionConcurrencyCommand,
    GetFunctionConfigurationCommand,
    LambdaClient,
  } = await import("@aws-sdk/client-lambda");
  const client = new LambdaClient(AWS_CLIENT);
  const function_ = async (FunctionName: string): Promise<Finding> => {
    const [configuration, { ReservedConcurrentExecutions: reserved }] = await Promise.all([
      client.send(new GetFunctionConfigurationCommand({ FunctionName })),
      client.send(new GetFunctionConcurrencyCommand({ FunctionName })),
    ]);
    return functionFinding(FunctionName, configuration, reserved);
  };
  const mapping = async ({ id, name: UUID }: Resource): Promise<Finding> =>
    mappingFinding(id, await client.send(new GetEventSourceMappingCommand({ UUID })));
  try {
    const found = await Promise.all([
      ...ownFunctions(resources).map(({ name }) =>
        one(`function ${name}`, "lambda:GetFunction*", () => function_(name)),
      ),
      ...ofType(resources, "AWS::Lambda::EventSourceMapping").map((resource) =>
        one(`mapping ${resource.id}`, "lambda:GetEventSourceMapping", () => mapping(resource)),
      ),
    ]);
    return found.flat();
  } finally {
    client.destroy();
  }
}

/** Looks at what starts a deployed stack's functions by time. */
export async function checkSchedules(resources: readonly Resource[]): Promise<readonly Finding[]> {
  const { DescribeRuleCommand, EventBridgeClient } = await import("@aws-sdk/client-eventbridge");
  const client = new EventBridgeClient(AWS_CLIENT);
  try {
    const found = await Promise.all(
      ofType(resources, "AWS::Events::Rule").map(({ id, name: Name }) =>
        one(`schedule ${id}`, "events:DescribeRule", async () => {
          const { State, ScheduleExpression = "" } = await client.send(new DescribeRuleCommand({ Name }));
          if (State === "ENABLED") return ok(`schedule ${id}`, `enabled, ${ScheduleExpression}`);
          return wrong(
            `schedule ${id}`,
            `is ${State}: nothing starts its function`,
            `aws events enable-rule --name ${Name}`,
          );
        }),
      ),
    );
    return found.flat();
  } finally {
    client.destroy();
  }
}

function one(part: string, action: string, look: () => Promise<Finding>): Promise<readonly Finding[]> {
  return examine(part, `allow ${action}, to know`, async () => {
    try {
      return [await look()];
    } catch (error) {
      if (!isMissing(error)) throw error;
      return [wrong(part, "does not exist any more", DEPLOY)];
    }
  });
}

function ofType(resources: readonly Resource[], type: string): readonly Resource[] {
  return resources.filter((resource) => resource.type === type);
}

function functionFinding(
  name: string,
  { State, StateReason, LastUpdateStatus, LastUpdateStatusReason, Runtime }: FunctionConfiguration,
  reserved: number | undefined,
): Finding {
  const part = `function ${name}`;
  if (reserved === 0)
    return wrong(
      part,
      "its concurrency is 0: it never runs",
      `aws lambda delete-function-concurrency --function-name ${name}, or deploy the stack again`,
    );
  if (State !== undefined && State !== "Active" && State !== "Inactive")
    return wrong(part, `is ${State}: ${cleanLine(StateReason ?? "")}`, DEPLOY);
  if (LastUpdateStatus === "Failed")
    return wrong(part, `its last update failed: ${cleanLine(LastUpdateStatusReason ?? "")}`, DEPLOY);
  if (LastUpdateStatus === "InProgress") return warning(part, "is being updated", "look again in a minute");
  return ok(part, Runtime === undefined ? "ready" : `ready, ${Runtime}`);
}

interface Mapping {
  readonly State?: string | undefined;
  readonly LastProcessingResult?: string | undefined;
  readonly FunctionResponseTypes?: readonly string[] | undefined;
  readonly UUID?: string | undefined;
}

function mappingFinding(id: string, mapping: Mapping): Finding {
  const { State = "unknown", LastProcessingResult = "", FunctionResponseTypes = [], UUID = "" } = mapping;
  const part = `mapping ${id}`;
  if (/^Disabl/.test(State))
    return wrong(
      part,
      `is ${State}: its queue is not worked on`,
      `aws lambda update-event-source-mapping --uuid ${UUID} --enabled`,
    );
  if (!FunctionResponseTypes.includes("ReportBatchItemFailures"))
    return wrong(part, "does not report single failures: what fails is deleted with what does not", DEPLOY);
  if (/^PROBLEM/.test(LastProcessingResult))
    return warning(
      part,
      cleanLine(LastProcessingResult),
      "see the lines of its function's log group, and its role's permissions",
    );
  if (State !== "Enabled") return warning(part, `is ${State}`, "look again in a minute");
  return ok(part, "enabled");
}
