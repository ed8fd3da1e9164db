import assert from "node:assert/strict";
import { test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { FUNCTION_NAMES } from "../../infra/bundle.ts";
import { type DeploymentConfig, parseDeployment } from "../../shared/config/deployment.ts";
import { deploymentOf, type Resource, resources, stackWith } from "./support/stack.ts";

/**
 * Each form of the stack is synthesized as `cdk synth` does it, without an account: what CloudFormation would refuse and
 * what cdk-nag finds are errors (infra/checked-app.ts). What must hold of all of them is looked at here.
 */

const BRIDGES = ["lambda", "fargate"] as const;
const NETWORKS = {
  none: undefined,
  existing: {
    vpcId: "vpc-01234567",
    subnetIds: ["subnet-01234567", "subnet-89abcdef"],
    availabilityZones: ["eu-central-1a", "eu-central-1b"],
    securityGroupIds: ["sg-01234567"],
  },
  new: { vpcId: "new", endpoints: true },
} as const;
const STAGES = { main: true, dev: false } as const;

for (const bridge of BRIDGES)
  for (const [network, placed] of Object.entries(NETWORKS))
    for (const [stage, keepData] of Object.entries(STAGES)) {
      if (bridge === "fargate" && placed === undefined) continue;
      test(`a bridge as ${bridge}, network ${network}, stage ${stage}`, () => {
        const cloud = { bridge, stage, keepData, logRetentionDays: 7, ...(placed && { network: placed }) };
        const functions = { "billing-2": { timeoutSec: 60, batchSize: 5, maxConcurrency: 3 } };
        const deployment = withRemotes(deploymentOf("support", "billing-2"));
        const stack = stackWith({ cloud, functions, deployment });
        assert.equal(stack.stackName, stage === "main" ? "sluice-acme" : "sluice-acme--dev");
        assert.deepEqual(stack.tags.tagValues(), { "sluice:deployment": "acme", "sluice:stage": stage });
        const template = Template.fromStack(stack);
        holdsOfEachForm(template);
        keepsData(template, keepData);
        assert.equal(resources(template, "AWS::ECS::Service").length, bridge === "fargate" ? 1 : 0);
        // One agent has its own; the bridge as a service is none.
        const count = FUNCTION_NAMES.length + (bridge === "fargate" ? 0 : 1);
        assert.equal(resources(template, "AWS::Lambda::Function").length, count);
        for (const { Properties } of resources(template, "AWS::Lambda::Function"))
          assert.equal(Properties.VpcConfig !== undefined, placed !== undefined);
        // The function's own code has no business with network interfaces.
        const kept = resources(template, "AWS::IAM::Policy").filter(deniesInterfaces);
        assert.equal(kept.length, placed === undefined ? 0 : count);
      });
    }

/** With remote agents on this network and on the internet. */
function withRemotes(deployment: DeploymentConfig): DeploymentConfig {
  const remotes = [
    { name: "near", url: "http://10.1.0.7:8080/a2a" },
    { name: "far", url: "https://far.example/a2a" },
  ];
  return parseDeployment({ ...deployment, remotes });
}

function deniesInterfaces({ Properties }: Resource): boolean {
  const text = JSON.stringify(Properties.PolicyDocument);
  return /"Effect":"Deny"/.test(text) && /ec2:CreateNetworkInterface/.test(text);
}

const containers = z.array(z.object({ User: z.string(), ReadonlyRootFilesystem: z.boolean() }));

function holdsOfEachForm(template: Template): void {
  const all = (type: string) => resources(template, type).map(({ Properties }) => Properties);
  const queues = template.findResources("AWS::SQS::Queue");
  const dead = new Set<string>();
  for (const { Properties } of Object.values(queues)) {
    assert.equal(Properties.SqsManagedSseEnabled, true);
    if (Properties.RedrivePolicy !== undefined)
      dead.add(Properties.RedrivePolicy.deadLetterTargetArn["Fn::GetAtt"][0]);
  }
  // A dead letter is kept for as long as SQS keeps any, and longer than its queue would have (docs/command.md).
  for (const [id, { Properties }] of Object.entries(queues))
    assert.equal(Properties.MessageRetentionPeriod, (dead.has(id) ? 14 : 4) * 86_400, id);
  const functions = template.findResources("AWS::Lambda::Function");
  const mappings = all("AWS::Lambda::EventSourceMapping");
  assert.equal(mappings.length, 5);
  for (const mapping of mappings) {
    assert.deepEqual(mapping.FunctionResponseTypes, ["ReportBatchItemFailures"]);
    const { MaximumConcurrency } = Object(mapping.ScalingConfig);
    assert.ok(MaximumConcurrency >= 2 && MaximumConcurrency <= 50);
    const queue = queues[Object(mapping.EventSourceArn)["Fn::GetAtt"][0]];
    assert.ok(queue?.Properties.RedrivePolicy, "a queue that is consumed has a dead-letter queue");
    const consumer = functions[Object(mapping.FunctionName).Ref];
    assert.ok(queue.Properties.VisibilityTimeout >= 6 * consumer?.Properties.Timeout);
  }
  // Every queue is consumed or is the end of one that is.
  assert.equal(Object.keys(queues).length, mappings.length + dead.size);

  for (const of of all("AWS::Lambda::Function")) {
    assert.deepEqual(of.Architectures, ["arm64"]);
    assert.equal(of.Runtime, "nodejs24.x");
    assert.deepEqual(of.TracingConfig, { Mode: "Active" });
  }
  for (const of of all("AWS::Logs::LogGroup")) assert.equal(of.RetentionInDays, 7);
  for (const of of all("AWS::S3::Bucket"))
    assert.deepEqual(new Set(Object.values(Object(of.PublicAccessBlockConfiguration))), new Set([true]));
  for (const type of ["AWS::Lambda::Url", "AWS::Lambda::LayerVersionPermission", "AWS::IAM::User"])
    assert.equal(all(type).length, 0, type);
  // Nobody but AWS's own services may call a function.
  for (const of of all("AWS::Lambda::Permission")) assert.equal(of.Principal, "events.amazonaws.com");
  for (const of of all("AWS::EC2::SecurityGroup")) assertClosed(of);
  for (const of of all("AWS::ECS::Service")) {
    const { AssignPublicIp } = Object(Object(of.NetworkConfiguration).AwsvpcConfiguration);
    assert.equal(AssignPublicIp, "DISABLED");
    const { DeploymentCircuitBreaker, MinimumHealthyPercent } = Object(of.DeploymentConfiguration);
    assert.deepEqual(DeploymentCircuitBreaker, { Enable: true, Rollback: true });
    assert.equal(MinimumHealthyPercent, 100);
  }
  for (const of of all("AWS::ECS::TaskDefinition"))
    assert.equal(Object(of.RuntimePlatform).CpuArchitecture, "ARM64");
  for (const of of all("AWS::ECS::TaskDefinition"))
    assert.deepEqual(containers.parse(of.ContainerDefinitions), [
      { User: "node", ReadonlyRootFilesystem: true },
    ]);
}

const rules = z
  .array(
    z.object({
      IpProtocol: z.string(),
      CidrIp: z.string().optional(),
      FromPort: z.int().optional(),
      ToPort: z.int().optional(),
    }),
  )
  .default([]);

/** Whoever is in the stack's network may go out to AWS, NATS and remote agents; only its endpoints let anything in, from its own. */
function assertClosed(group: Record<string, unknown>): void {
  const egress = rules.parse(group.SecurityGroupEgress);
  for (const { FromPort, ToPort, IpProtocol, CidrIp } of egress)
    if (CidrIp === "0.0.0.0/0") assert.deepEqual([IpProtocol, FromPort, ToPort], ["tcp", FromPort, FromPort]);
    else assert.equal(CidrIp, "255.255.255.255/32"); // CloudFormation's way to say nowhere
  const ports = egress.filter(({ CidrIp }) => CidrIp === "0.0.0.0/0").map(({ FromPort }) => FromPort);
  for (const port of ports) assert.ok(port === 443 || port === 4222 || port === 8080);
  for (const rule of rules.parse(group.SecurityGroupIngress)) assert.equal(rule.CidrIp, undefined);
}

function keepsData(template: Template, kept: boolean): void {
  for (const type of ["AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"])
    for (const of of resources(template, type)) assert.equal(of.DeletionPolicy, kept ? "Retain" : "Delete");
  template.hasResourceProperties("AWS::DynamoDB::Table", {
    BillingMode: "PAY_PER_REQUEST",
    DeletionProtectionEnabled: kept,
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    SSESpecification: { SSEEnabled: true },
  });
}
