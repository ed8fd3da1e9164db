import { RemovalPolicy } from "aws-cdk-lib";
import { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";

/** A log group that forgets after so many days, and goes with the stack: what matters is in the table. */
export function forgettingLogs(scope: Construct, id: string, retentionDays: number): LogGroup {
  return new LogGroup(scope, id, { retention: retentionDays, removalPolicy: RemovalPolicy.DESTROY });
}
