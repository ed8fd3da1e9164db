import { type App, CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import type { FunctionName } from "./bundle.ts";
import { Functions, type NatsOverride } from "./functions.ts";
import { Queues } from "./queues.ts";
import { Schedules } from "./schedules.ts";
import { QUEUE_NAMES, VALUES_KEPT_DAYS } from "./sizes.ts";
import { Storage } from "./storage.ts";

export interface SluiceStackProps extends StackProps {
  readonly deployment: DeploymentConfig;
  /** Each function's bundle. */
  readonly folders: Readonly<Record<FunctionName, string>>;
  readonly nats?: NatsOverride;
}

/** One deployment of Sluice. */
export class SluiceStack extends Stack {
  constructor(app: App, id: string, props: SluiceStackProps) {
    super(app, id, props);
    const storage = new Storage(this, "Storage", { valuesExpireDays: valuesExpireDays(props.deployment) });
    const queues = new Queues(this, "Queues");
    const functions = new Functions(this, "Functions", {
      storage,
      queues,
      folders: props.folders,
      nats: props.nats ?? {},
    });
    new Schedules(this, "Schedules", functions);

    new CfnOutput(this, "TableName", { value: storage.table.tableName });
    new CfnOutput(this, "BucketName", { value: storage.bucket.bucketName });
    for (const name of QUEUE_NAMES) {
      const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
      new CfnOutput(this, `${title}QueueUrl`, { value: queues.pairs[name].queue.queueUrl });
      new CfnOutput(this, `${title}DeadQueueUrl`, { value: queues.pairs[name].dead.queueUrl });
    }
  }
}

/** The name of a deployment's stack; CloudFormation allows letters, digits and `-`. */
export function stackName(deployment: string): string {
  return `sluice-${deployment.replaceAll("_", "-")}`;
}

/** A value must outlive the longest task that any agent may be given, and the time that its record is kept. */
function valuesExpireDays(deployment: DeploymentConfig): number {
  const longestSec = Math.max(0, ...deployment.agents.map(({ policy }) => policy.timeoutSec.max));
  return Math.ceil(longestSec / 86_400) + VALUES_KEPT_DAYS;
}
