import { Stack } from "aws-cdk-lib";
import type { PolicyDocument } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import * as z from "zod";
import { ConfigError } from "../shared/config/config-error.ts";

/** Of a role's inline policies together, without white space (IAM User Guide, "IAM and AWS STS quotas"). */
const MAX_POLICY_CHARACTERS = 10_240;
/** Of a function's variables together, with their names (Lambda Developer Guide, "Lambda quotas"). */
const MAX_ENVIRONMENT_BYTES = 4_096;

/** What only CloudFormation knows: as long as it is at the most. */
const PSEUDO: Readonly<Record<string, string>> = {
  "AWS::AccountId": "123456789012",
  "AWS::Partition": "aws-cn",
  "AWS::Region": "ap-southeast-1",
};
/** As long as the URL or the ARN of a queue, whose name has 80 characters (SQS quotas): most that is named here is one. */
const NAMED = "x".repeat(140);

/** What a function brings with it whose size AWS bounds. */
export interface Bounded {
  /** Where the operator makes it larger or smaller. */
  readonly field: string;
  readonly policies: readonly PolicyDocument[];
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Refuses what CloudFormation takes and IAM or Lambda would not: that would be known in the midst of a deployment only.
 *
 * @throws ConfigError that names the field, how much there is and how much there may be
 */
export function keepWithinQuotas(scope: Construct, { field, policies, environment }: Bounded): void {
  const lengthOf = (value: unknown) => JSON.stringify(written(Stack.of(scope).resolve(value))).length;
  const policy = policies.reduce((sum, of) => sum + lengthOf(of), 0);
  if (policy > MAX_POLICY_CHARACTERS)
    throw new ConfigError(
      `${field}: expected secrets and permissions with which the policies of the role ${scope.node.id} have at most ${MAX_POLICY_CHARACTERS} characters, got about ${policy}`,
    );
  const variables = lengthOf(environment);
  if (variables <= MAX_ENVIRONMENT_BYTES) return;
  const [[largest] = []] = Object.entries(environment).toSorted(([, a], [, b]) => lengthOf(b) - lengthOf(a));
  throw new ConfigError(
    `${field}: expected what makes at most ${MAX_ENVIRONMENT_BYTES} bytes of variables for ${scope.node.id}, got about ${variables}, most of them in ${largest}`,
  );
}

const join = z.object({ "Fn::Join": z.tuple([z.string(), z.array(z.unknown())]) });

/** A value of a template as it will be written, near enough. */
function written(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== "object" || value === null) return value;
  const joined = join.safeParse(value).data?.["Fn::Join"];
  if (joined !== undefined) return joined[1].map(written).join(joined[0]);
  const [[name = "", of] = []] = Object.entries(value);
  if (name === "Ref" || name.startsWith("Fn::")) return PSEUDO[String(of)] ?? NAMED;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, written(each)]));
}
