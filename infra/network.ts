import { Validations } from "aws-cdk-lib";
import {
  FlowLogDestination,
  FlowLogTrafficType,
  GatewayVpcEndpointAwsService,
  InterfaceVpcEndpointAwsService,
  IpAddresses,
  type ISecurityGroup,
  type IVpc,
  Peer,
  Port,
  SecurityGroup,
  type SubnetSelection,
  SubnetType,
  Vpc,
} from "aws-cdk-lib/aws-ec2";
import { Construct } from "constructs";
import type { CloudConfig, NetworkConfig } from "../shared/config/cloud.ts";
import { forgettingLogs } from "./logs.ts";

/** Where NATS servers listen that say nothing else (NATS docs: "Configuration", port). */
const NATS_PORT = 4_222;
const HTTP_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Where functions and services have their network interfaces. */
export interface Placement {
  readonly vpc: IVpc;
  readonly subnets: SubnetSelection;
  readonly securityGroups: readonly ISecurityGroup[];
}

export interface NetworkProps {
  readonly network: NetworkConfig;
  readonly cloud: Pick<CloudConfig, "bridge" | "logRetentionDays">;
  /** URLs of the NATS servers. */
  readonly servers: readonly string[];
  /** URLs of the remote agents. */
  readonly remotes: readonly string[];
}

/**
 * The VPC that everything which computes is in: an existing one, or one of the stack's own. What is in it may go out to
 * AWS and to NATS, and nothing may come in.
 */
export class Network extends Construct {
  readonly placement: Placement;

  constructor(scope: Construct, id: string, { network, cloud, servers, remotes }: NetworkProps) {
    super(scope, id);
    const vpc = network.vpcId === "new" ? this.#own(cloud.logRetentionDays) : this.#existing(network);
    const group = new SecurityGroup(this, "Group", {
      vpc,
      description: "Out to AWS and NATS, nothing in",
      allowAllOutbound: false,
    });
    // Neither has fixed addresses.
    const ports = new Map([
      ...remotes.map((url) => [portOf(url), "Remote agents"] as const),
      ...servers.map((url) => [portOf(url), "NATS"] as const),
      [443, "AWS"] as const,
    ]);
    for (const [port, what] of ports) group.addEgressRule(Peer.anyIpv4(), Port.tcp(port), what);
    const further = network.securityGroupIds.map((groupId, i) =>
      SecurityGroup.fromSecurityGroupId(this, `Further${i}`, groupId, { mutable: false }),
    );
    this.placement = {
      vpc,
      subnets:
        network.vpcId === "new"
          ? { subnetType: SubnetType.PRIVATE_WITH_EGRESS }
          : { subnets: vpc.privateSubnets },
      securityGroups: [group, ...further],
    };
    // They cost nothing, and keep the table's traffic off the NAT gateway.
    if (network.endpoints || network.vpcId === "new") this.#gateways();
    if (network.endpoints) this.#interfaces(group, cloud.bridge);
  }

  /** One NAT gateway: a zone's failure must not cost what a second one does (docs/deploying.md). */
  #own(logRetentionDays: number): Vpc {
    const vpc = new Vpc(this, "Vpc", {
      ipAddresses: IpAddresses.cidr("10.0.0.0/20"),
      maxAzs: 2,
      natGateways: 1,
      subnetConfiguration: [
        { name: "Public", subnetType: SubnetType.PUBLIC, cidrMask: 26, mapPublicIpOnLaunch: false },
        { name: "Private", subnetType: SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 22 },
      ],
    });
    vpc.addFlowLog("Refused", {
      destination: FlowLogDestination.toCloudWatchLogs(forgettingLogs(this, "Logs", logRetentionDays)),
      trafficType: FlowLogTrafficType.REJECT,
    });
    return vpc;
  }

  /** By what the operator says of it: nothing is looked up. */
  #existing({ vpcId, availabilityZones = [], subnetIds = [], routeTableIds }: NetworkConfig): IVpc {
    // Only gateway endpoints enter themselves into route tables.
    Validations.of(this).acknowledge({
      id: "Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId",
      reason: "The configuration asks for route tables where they are needed.",
    });
    return Vpc.fromVpcAttributes(this, "Vpc", {
      vpcId,
      availabilityZones,
      privateSubnetIds: subnetIds,
      ...(routeTableIds !== undefined && { privateSubnetRouteTableIds: routeTableIds }),
    });
  }

  #gateways(): void {
    const { vpc, subnets } = this.placement;
    vpc.addGatewayEndpoint("DynamoDb", {
      service: GatewayVpcEndpointAwsService.DYNAMODB,
      subnets: [subnets],
    });
    vpc.addGatewayEndpoint("S3", { service: GatewayVpcEndpointAwsService.S3, subnets: [subnets] });
  }

  #interfaces(from: ISecurityGroup, bridge: CloudConfig["bridge"]): void {
    const { vpc, subnets } = this.placement;
    const group = new SecurityGroup(this, "Endpoints", {
      vpc,
      description: "In from the functions",
      allowAllOutbound: false,
    });
    group.addIngressRule(Peer.securityGroupId(from.securityGroupId), Port.HTTPS, "The functions");
    const { SQS, SECRETS_MANAGER, CLOUDWATCH_LOGS, XRAY, ECR, ECR_DOCKER } = InterfaceVpcEndpointAwsService;
    // A container's image comes from ECR, its layers from S3 (ECR User Guide, "Interface VPC endpoints").
    const services = {
      SQS,
      SECRETS_MANAGER,
      CLOUDWATCH_LOGS,
      XRAY,
      ...(bridge === "fargate" && { ECR, ECR_DOCKER }),
    };
    for (const [name, service] of Object.entries(services))
      vpc.addInterfaceEndpoint(name, { service, subnets, securityGroups: [group], open: false });
  }
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === "" ? (HTTP_PORTS[protocol] ?? NATS_PORT) : Number(port);
}
