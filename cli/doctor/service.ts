import type { ECSClient, Service } from "@aws-sdk/client-ecs";
import type { Resource } from "../deployed.ts";
import { AWS_CLIENT } from "../place.ts";
import { cleanLine } from "../text.ts";
import { examine, type Finding, ok, warning, wrong } from "./finding.ts";

const PART = "bridge service";
const DEPLOY = "deploy the stack again";

/** Looks at the bridge of a deployed stack whose bridge is a service of Fargate (infra/bridge-service.ts). */
export async function checkService(resources: readonly Resource[]): Promise<readonly Finding[]> {
  const named = (type: string) => resources.find((of) => of.type === type)?.name;
  const [cluster, service] = [named("AWS::ECS::Cluster"), named("AWS::ECS::Service")];
  if (service === undefined) return [];
  const { DescribeServicesCommand, ECSClient } = await import("@aws-sdk/client-ecs");
  const client = new ECSClient(AWS_CLIENT);
  try {
    return await examine(PART, "allow ecs:DescribeServices, to know", async () => {
      const answer = await client.send(new DescribeServicesCommand({ cluster, services: [service] }));
      const [found] = answer.services ?? [];
      if (found === undefined || found.status !== "ACTIVE")
        return [wrong(PART, "does not exist any more: nothing is pulled", DEPLOY)];
      return [await serviceFinding(client, found)];
    });
  } finally {
    client.destroy();
  }
}

async function serviceFinding(client: ECSClient, service: Service): Promise<Finding> {
  const {
    desiredCount: desired = 0,
    runningCount: running = 0,
    serviceName,
    clusterArn,
    deployments,
  } = service;
  if (desired === 0)
    return wrong(
      PART,
      "is to run no task: nothing is pulled",
      `aws ecs update-service --cluster ${clusterArn} --service ${serviceName} --desired-count 1`,
    );
  const says = `${running} of ${desired} ${desired === 1 ? "task runs" : "tasks run"}`;
  const look = "see the lines of its log group, and that its subnets reach NATS and the registry";
  if (running === 0) return wrong(PART, `${says}: nothing is pulled${await lastStop(client, service)}`, look);
  if (running < desired) return warning(PART, `${says}${await lastStop(client, service)}`, look);
  const failed = deployments?.find(({ rolloutState }) => rolloutState === "FAILED");
  if (failed !== undefined)
    return warning(
      PART,
      `${says}; its last deployment has failed: ${cleanLine(failed.rolloutStateReason ?? "no reason is told")}`,
      DEPLOY,
    );
  return ok(PART, says);
}

/** Why its last task has stopped: ECS tells it for an hour (Amazon ECS API Reference, DescribeTasks). */
async function lastStop(client: ECSClient, { clusterArn, serviceName }: Service): Promise<string> {
  const { DescribeTasksCommand, ListTasksCommand } = await import("@aws-sdk/client-ecs");
  const cluster = clusterArn;
  try {
    const stopped = { cluster, serviceName, desiredStatus: "STOPPED" } as const;
    const { taskArns = [] } = await client.send(new ListTasksCommand(stopped));
    if (taskArns.length === 0) return "; none has stopped within the last hour";
    const { tasks = [] } = await client.send(new DescribeTasksCommand({ cluster, tasks: taskArns }));
    const at = ({ stoppedAt }: { stoppedAt?: Date | undefined }) => stoppedAt?.getTime() ?? 0;
    const last = tasks.toSorted((a, b) => at(b) - at(a))[0];
    const inside = last?.containers?.find(({ exitCode, reason }) => reason || exitCode);
    const exit = inside?.reason ?? (inside && `its container ended with ${inside.exitCode}`);
    const reasons = [last?.stoppedReason, exit].filter((reason) => reason !== undefined);
    return `; the last one has stopped: ${cleanLine(reasons.join("; "), 500)}`;
  } catch {
    return "; allow ecs:ListTasks and ecs:DescribeTasks, to know why the last one has stopped";
  }
}
