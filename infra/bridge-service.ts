import { Duration, Stack, Validations } from "aws-cdk-lib";
import { Platform } from "aws-cdk-lib/aws-ecr-assets";
import {
  Cluster,
  ContainerImage,
  ContainerInsights,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  LinuxParameters,
  LogDrivers,
  OperatingSystemFamily,
} from "aws-cdk-lib/aws-ecs";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { LogGroup } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { environmentOf } from "./environment.ts";
import { statementsFor } from "./grants.ts";
import { healthCommand } from "./health-command.ts";
import { forgettingLogs } from "./logs.ts";
import type { Placement } from "./network.ts";
import type { Parts } from "./parts.ts";
import { BRIDGE_SERVICE_SIZE } from "./sizes.ts";

/** Where it says on its own machine whether it is well; nobody else can ask. */
const HEALTH_PORT = 8_080;

export interface BridgeServiceProps {
  /** The folder of its bundle, with its Dockerfile. */
  readonly folder: string;
  readonly parts: Parts;
  readonly placement: Placement;
}

/**
 * The bridge as one small container that is always there. It is replaced when it does not answer, or has lost NATS, and
 * a new version runs before the old one is asked to stop: two at once do no harm (functions/bridge/bridge.ts).
 */
export class BridgeService extends Construct {
  readonly cluster: Cluster;
  readonly service: FargateService;
  readonly logGroup: LogGroup;

  constructor(scope: Construct, id: string, { folder, parts, placement }: BridgeServiceProps) {
    super(scope, id);
    this.logGroup = forgettingLogs(this, "Logs", parts.logRetentionDays);
    this.cluster = new Cluster(this, "Cluster", {
      vpc: placement.vpc,
      containerInsightsV2: ContainerInsights.DISABLED,
    });
    Validations.of(this.cluster).acknowledge({
      id: "AwsSolutions-ECS4",
      reason:
        "One container's own metrics tell how it does; Container Insights would cost more than the container.",
    });
    this.service = new FargateService(this, "Service", {
      cluster: this.cluster,
      taskDefinition: this.#task(folder, parts),
      desiredCount: 1,
      minHealthyPercent: 100,
      maxHealthyPercent: 200,
      circuitBreaker: { rollback: true },
      assignPublicIp: false,
      vpcSubnets: placement.subnets,
      securityGroups: [...placement.securityGroups],
    });
    // Else a first container might look in vain for its image.
    const { internetConnectivityEstablished } = placement.vpc.selectSubnets(placement.subnets);
    this.service.node.addDependency(internetConnectivityEstablished);
  }

  #task(folder: string, parts: Parts): FargateTaskDefinition {
    const task = new FargateTaskDefinition(this, "Task", {
      cpu: BRIDGE_SERVICE_SIZE.cpu,
      memoryLimitMiB: BRIDGE_SERVICE_SIZE.memoryMb,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.ARM64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
      taskRole: new Role(this, "Role", {
        assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com"),
        inlinePolicies: {
          sluice: new PolicyDocument({ statements: statementsFor(this, { name: "bridge", parts }) }),
        },
      }),
    });
    task.addContainer("bridge", {
      // Built when it is deployed; to synthesize takes no Docker.
      image: ContainerImage.fromAsset(folder, { platform: Platform.LINUX_ARM64 }),
      environment: {
        ...environmentOf(this, "bridge", parts),
        AWS_REGION: Stack.of(this).region,
        HEALTH_PORT: String(HEALTH_PORT),
      },
      logging: LogDrivers.awsLogs({ logGroup: this.logGroup, streamPrefix: "bridge" }),
      user: "node",
      readonlyRootFilesystem: true,
      linuxParameters: new LinuxParameters(this, "Linux", { initProcessEnabled: true }),
      healthCheck: {
        command: ["CMD", ...healthCommand(HEALTH_PORT)],
        interval: Duration.seconds(30),
        timeout: Duration.seconds(10),
        retries: 3,
        startPeriod: Duration.seconds(60),
      },
      // Longer than a run takes to end (functions/bridge/serve.ts).
      stopTimeout: Duration.seconds(60),
    });
    Validations.of(task).acknowledge(
      {
        id: "AwsSolutions-ECS2",
        reason: "Names and URLs; a secret is only named, and read by the bridge itself.",
      },
      {
        id: "AwsSolutions-IAM5[Resource::*]",
        reason: "To log in to the registry knows no resource (Service Authorization Reference, Amazon ECR).",
      },
    );
    return task;
  }
}
