import { type App, CfnOutput, Stack, type StackProps, Validations } from "aws-cdk-lib";
import manifest from "../package.json" with { type: "json" };
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import type { FunctionName } from "./bundle.ts";
import { type NatsOverride, SluiceFunction } from "./functions.ts";
import { QueuePair, type Queues } from "./queues.ts";
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
    const credentials = props.nats?.credentials ?? props.deployment.nats.credentials;
    if (credentials.startsWith("file:"))
      Validations.of(this).addWarning(
        "sluice:credentials-file",
        `nats.credentials: ${credentials} is a file of this machine, which functions in the cloud cannot read; expected secret:NAME there`,
      );
    const storage = new Storage(this, "Storage", { valuesExpireDays: valuesExpireDays(props.deployment) });
    const queues: Queues = {
      tasks: new QueuePair(this, "Tasks", "tasks"),
      controls: new QueuePair(this, "Controls", "controls"),
      events: new QueuePair(this, "Events", "events"),
      work: new QueuePair(this, "Work", "work"),
    };
    const make = (name: FunctionName, description: string) =>
      new SluiceFunction(this, name, {
        description,
        folder: props.folders[name],
        storage,
        queues,
        nats: props.nats ?? {},
      });
    const bridge = make("bridge", "Forwards NATS messages to the queues");
    make("admit", "Decides each task once");
    make("control", "Answers cancel and status");
    make("events", "Takes in what comes of tasks that were handed on");
    make("work", "Runs the agents' handlers");
    const sweep = make("sweep", "Picks up whatever is due and nobody holds");
    new Schedules(this, "Schedules", { bridge, sweep });

    new CfnOutput(this, "TableName", { value: storage.table.tableName });
    new CfnOutput(this, "BucketName", { value: storage.bucket.bucketName });
    new CfnOutput(this, "SluiceVersion", { value: manifest.version });
    for (const name of QUEUE_NAMES) {
      const title = `${name[0]?.toUpperCase()}${name.slice(1)}`;
      new CfnOutput(this, `${title}QueueUrl`, { value: queues[name].queue.queueUrl });
      new CfnOutput(this, `${title}DeadQueueUrl`, { value: queues[name].dead.queueUrl });
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
