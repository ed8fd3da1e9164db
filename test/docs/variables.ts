import { Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { FUNCTION_NAMES } from "../../infra/bundle.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import type { FunctionVariable } from "../../shared/config/env.ts";
import { deploymentOf, stackWith } from "../infra/support/stack.ts";
import type { Cell } from "../report/markdown.ts";

/** What functions read by their schemas (shared/config/env.ts): bundles carry no descriptions. */
const OURS: Readonly<Record<FunctionVariable, string>> = {
  TABLE_NAME: "The table in which tasks are.",
  BUCKET_NAME: "The bucket in which large values are.",
  TASKS_QUEUE_URL: "Where tasks are forwarded to.",
  CONTROLS_QUEUE_URL: "Where controls are forwarded to.",
  EVENTS_QUEUE_URL: "Where events of delegated tasks are forwarded to.",
  INSTANCE_ID: "Which stack it is of, as cards and heartbeats tell.",
  WORK_QUEUE_URL: "Where hints go that a task may be claimed. A work function of an agent's own has none.",
  WORK_QUEUE_URLS:
    "As a JSON object by runtime, the queues of agents with a `function`; only its own in such a function.",
  NATS_SERVERS: "Servers, divided by commas; override the deployment's.",
  NATS_CREDENTIALS: "Overrides the deployment's `nats.credentials`.",
};

/** What is read by others than a schema of ours: Powertools, Node.js, the AWS SDK, the local host's functions. */
const OTHERS: Readonly<Record<string, string>> = {
  POWERTOOLS_SERVICE_NAME: "The function's name in logs and metrics.",
  POWERTOOLS_METRICS_NAMESPACE: "The namespace of its metrics: `Sluice/<stack>`.",
  LOG_LEVEL: "How much is logged.",
  NODE_OPTIONS: "That stack traces name lines of the sources.",
  AWS_REGION: "The region; a function has it from Lambda.",
  HEALTH_PORT: "Where the bridge as a service answers on its own machine whether it is well.",
  CREDENTIAL_VARIABLES:
    "Names of variables, divided by commas, in which credentials of [remote agents](remotes.md) are kept (`env:NAME`); the local host hands these on.",
  TIME_SCALE: "How much faster than normal; set by the local host alone.",
};

const lambda = z.object({
  Environment: z.object({
    Variables: z.looseObject({ POWERTOOLS_SERVICE_NAME: z.string() }),
  }),
});
const container = z.object({
  ContainerDefinitions: z.array(z.object({ Environment: z.array(z.object({ Name: z.string() })) })),
});

/**
 * The environment of the stack's functions as a table: who is told what, by the templates of a stack with all that can
 * be asked of one, and what it means.
 *
 * @throws Error that names a variable which a template sets and nobody describes, or the other way round
 */
export function variableTable(): { head: string[]; rows: Cell[][] } {
  const told = toldTo();
  const described = new Map(Object.entries({ ...OURS, ...OTHERS }));
  for (const name of told.keys())
    if (!described.has(name)) throw new Error(`${name}: set by the stack, and described nowhere`);
  return {
    head: ["variable", "told to", "meaning"],
    rows: Array.from(described, ([name, meaning]) => [`\`${name}\``, who(told.get(name)), meaning]),
  };
}

/** By variable, the functions that the templates tell it to; `a container` is the bridge as a service. */
function toldTo(): Map<string, Set<string>> {
  const nats = { servers: "nats://a:1", credentials: "none" };
  const told = new Map<string, Set<string>>();
  const tell = (name: string, to: string) => told.set(name, (told.get(name) ?? new Set()).add(to));
  const functions = { heavy: {} };
  const remotes = [{ name: "a", url: "https://a.example/a2a", auth: { credentials: "env:A_KEY" } }];
  const { agents, deployment: name } = deploymentOf("support", "heavy");
  const deployment = parseDeployment({ deployment: name, agents, remotes });
  const asFunction = Template.fromStack(stackWith({ deployment, functions, nats }));
  for (const { Properties } of Object.values(asFunction.findResources("AWS::Lambda::Function"))) {
    const { Variables } = lambda.parse(Properties).Environment;
    for (const name of Object.keys(Variables)) tell(name, Variables.POWERTOOLS_SERVICE_NAME);
  }
  const cloud = { bridge: "fargate", network: { vpcId: "new" } };
  const asService = Template.fromStack(stackWith({ cloud, functions, nats }));
  for (const { Properties } of Object.values(asService.findResources("AWS::ECS::TaskDefinition")))
    for (const { Environment } of container.parse(Properties).ContainerDefinitions)
      for (const { Name } of Environment) tell(Name, "a container");
  return told;
}

function who(to: ReadonlySet<string> = new Set()): string {
  const names = FUNCTION_NAMES.filter((name) => to.has(name));
  if (names.length === FUNCTION_NAMES.length) return "all";
  if (names.length > 0) return names.map((name) => `\`${name}\``).join(", ");
  return to.size === 0 ? "on the local host: all" : "the bridge as a service";
}
