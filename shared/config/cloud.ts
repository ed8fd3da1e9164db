import * as z from "zod";
import { secretNameCheck } from "./forms.ts";

/**
 * How a deployment is put into an AWS account: the section `cloud` of `agents.yaml`, and `function` of its agents. Only
 * the stack reads it (infra/); no bundle carries it, so that a changed alarm replaces no function.
 */

/** The stage of a deployment that has no other: its stack's name does not show it. */
export const MAIN_STAGE = "main";

export const stageName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,15}$/, "expected 1 to 16 of a-z, 0-9 and -, a letter first");

/** The times that CloudWatch Logs offers, in days (CloudWatch Logs API: PutRetentionPolicy). */
const LOG_RETENTION_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
] as const;

/** Ids of EC2's resources: 8 hexadecimal digits, or 17 (EC2 User Guide, "Resource IDs"). */
const resourceId = (prefix: string) =>
  z.string().regex(new RegExp(`^${prefix}-([0-9a-f]{8}|[0-9a-f]{17})$`), `expected an id ${prefix}-…`);

const network = z
  .strictObject({
    vpcId: z
      .string()
      .regex(/^(new|vpc-([0-9a-f]{8}|[0-9a-f]{17}))$/, "expected an id vpc-… or new")
      .describe("An existing VPC, or a new one with two private subnets and a NAT gateway."),
    subnetIds: z
      .array(resourceId("subnet"))
      .min(1)
      .max(16)
      .optional()
      .describe("The private subnets of an existing VPC, which must reach NATS and AWS."),
    availabilityZones: z
      .array(z.string().regex(/^[a-z]+(-[a-z0-9]+)+$/, "expected a zone such as eu-central-1a"))
      .optional()
      .describe("The zone of each of the subnets, for nothing is looked up."),
    routeTableIds: z
      .array(resourceId("rtb"))
      .optional()
      .describe("With `endpoints` in an existing VPC: the route table of each of the subnets."),
    // A function may have five in all (Lambda API: VpcConfig).
    securityGroupIds: z
      .array(resourceId("sg"))
      .max(4)
      .default([])
      .describe(
        "Further security groups. The stack's own lets out to 443 and the ports of `nats.servers`, and nothing in.",
      ),
    endpoints: z
      .boolean()
      .default(false)
      .describe(
        "Makes the VPC endpoints that the functions need: SQS, Secrets Manager, CloudWatch Logs, X-Ray, and for a container ECR; and in an existing VPC DynamoDB and S3, which `new` has anyway.",
      ),
  })
  .superRefine((of, context) => {
    for (const [field, expected] of networkFlaws(of))
      context.addIssue({ code: "custom", path: [field], message: `expected ${expected}` });
  });
export type NetworkConfig = z.infer<typeof network>;

interface Subnets {
  readonly vpcId: string;
  readonly subnetIds?: readonly string[] | undefined;
  readonly availabilityZones?: readonly string[] | undefined;
  readonly routeTableIds?: readonly string[] | undefined;
  readonly endpoints: boolean;
}

/** Fields that do not go together with the others, and what was expected of them. */
function networkFlaws(of: Subnets): [string, string][] {
  const perSubnet = ["availabilityZones", "routeTableIds"] as const;
  if (of.vpcId === "new")
    return (["subnetIds", ...perSubnet] as const)
      .filter((field) => of[field] !== undefined)
      .map((field) => [field, "nothing beside vpcId: new, which makes its own"]);
  if (of.subnetIds === undefined) return [["subnetIds", `the private subnets of ${of.vpcId}`]];
  const needed = of.endpoints ? perSubnet : (["availabilityZones"] as const);
  const count = of.subnetIds.length;
  return perSubnet
    .filter((field) =>
      of[field] === undefined ? needed.some((name) => name === field) : of[field].length !== count,
    )
    .map((field) => [field, `one for each of the subnetIds (${count})`]);
}

const alarms = z
  .strictObject({
    emails: z
      .array(z.email("expected an e-mail address"))
      .max(100)
      .refine((emails) => new Set(emails).size === emails.length, "expected each address once")
      .default([])
      .describe("Who is told, by a topic of the stack's own."),
    topicArn: z
      .string()
      .regex(
        /^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$/,
        "expected the ARN of an SNS topic",
      )
      .optional()
      .describe("An existing SNS topic instead."),
  })
  .refine(({ emails, topicArn }) => emails.length === 0 || topicArn === undefined, {
    error: "expected either emails or topicArn",
  });

export const cloudConfig = z
  .strictObject({
    stage: stageName
      .default(MAIN_STAGE)
      .describe(
        "The stack of the stage `main` is `sluice-<deployment>`, that of another `sluice-<deployment>--<stage>`.",
      ),
    keepData: z
      .boolean()
      .default(true)
      .describe(
        "Table, bucket and stack refuse to be deleted, and table, bucket and the secret of the signing key outlive the stack. With `false` they go with it, the bucket if it is empty.",
      ),
    bridge: z
      .enum(["lambda", "fargate"])
      .default("lambda")
      .describe(
        "A function that is started each minute, or a small container that is always there and needs a `network`.",
      ),
    network: network
      .optional()
      .describe("The VPC that everything which computes is in. Without it there is none."),
    logRetentionDays: z
      .literal(LOG_RETENTION_DAYS)
      .default(30)
      .describe("How long logs are kept, in days, of those that CloudWatch offers."),
    alarms: alarms.prefault({}).describe("Where alarms go: `emails` or `topicArn`; without either nowhere."),
  })
  .refine(({ bridge, network: placed }) => bridge === "lambda" || placed !== undefined, {
    error: "expected a network (vpcId: new, or an existing one), for a fargate bridge runs in a VPC",
    path: ["network"],
  });
/** How a deployment is put into an AWS account; each field is explained in docs/configuration.md. */
export type CloudConfig = z.infer<typeof cloudConfig>;

const permission = z.strictObject({
  actions: z
    .array(
      z.string().regex(/^[a-z0-9-]+:[A-Za-z0-9]+$/, "expected an action such as s3:GetObject, without *"),
    )
    .min(1)
    .max(50)
    .describe("What it may do, named in full."),
  resources: z
    .array(z.string().regex(/^(\*|arn:[^\s:]+:[^\s:]+:[^\s:]*:[^\s:]*:\S+)$/, "expected an ARN, or *"))
    .min(1)
    .max(50)
    .describe("On what; `*` where AWS knows no resource."),
});

/**
 * A work function of an agent's own. Shorter than 30 s its invocations would be over before they have begun: the last
 * ten are kept for leaving (shared/config/timing.ts).
 */
export const agentFunction = z.strictObject({
  memoryMb: z.int().min(128).max(10_240).default(1_024).describe("Memory in MB; CPU comes with it."),
  timeoutSec: z
    .int()
    .min(30)
    .max(900)
    .default(900)
    .describe("How long one invocation may take, in seconds. A task may take many."),
  // SQS gives ten without a window (Lambda API: CreateEventSourceMapping).
  batchSize: z
    .int()
    .min(1)
    .max(10)
    .default(1)
    .describe(
      "Tasks in one invocation. More than one share memory and time, and end together if one ends the process.",
    ),
  // As Lambda has it (Lambda API: ScalingConfig).
  maxConcurrency: z.int().min(2).max(1_000).default(50).describe("Invocations at once."),
  secrets: z
    .array(z.string().check(secretNameCheck()))
    .max(20)
    .default([])
    .describe("Secrets in Secrets Manager that it may read."),
  permissions: z.array(permission).max(20).default([]).describe("What else it may do."),
});
/** Where all their queues' URLs fit into an environment of 4 KB with the rest (AWS Lambda quotas). */
export const MAX_OWN_FUNCTIONS = 12;
/** A work function, and a queue, of an agent's own; each field is explained in docs/configuration.md. */
export type AgentFunction = z.infer<typeof agentFunction>;
