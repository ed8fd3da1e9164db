import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { type Bundles, FUNCTION_NAMES } from "../../../infra/bundle.ts";
import { checkedApp } from "../../../infra/checked-app.ts";
import { SluiceStack, type SluiceStackProps, stackName } from "../../../infra/stack.ts";
import { agentFunction, cloudConfig } from "../../../shared/config/cloud.ts";
import { type DeploymentConfig, parseDeployment } from "../../../shared/config/deployment.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-stack-"));
process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));

/** A folder that passes for a bundle: any file will do for a template. */
function bundle(name: string): string {
  const folder = join(scratch, "bundles", name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "index.mjs"), `export const handler = "${name}";`);
  writeFileSync(join(folder, "Dockerfile"), "FROM node:24-slim");
  return folder;
}

function bundles(own: readonly string[]): Omit<Bundles, "inputs"> {
  const [bridge, admit, control, events, work, sweep, cards] = FUNCTION_NAMES.map(bundle);
  return {
    folders: z
      .record(z.enum(FUNCTION_NAMES), z.string())
      .parse({ bridge, admit, control, events, work, sweep, cards }),
    workFolders: new Map(own.map((id) => [id, bundle(`work-${id}`)])),
    serviceFolder: bundle("bridge-service"),
  };
}

/** A deployment `acme` far from this machine, with an agent for each id. */
export function deploymentOf(...ids: readonly string[]): DeploymentConfig {
  const nats = { servers: ["tls://nats.example:4222"] };
  return parseDeployment({ deployment: "acme", nats, agents: ids.map((id) => hosted(86_400, id)) });
}

export function hosted(maxSec: number, id = "support") {
  return {
    id,
    runtime: `acme-${id}`,
    channelRef: id,
    displayName: id,
    description: "",
    version: "1.0.0",
    skills: [{ slug: "task", name: "Task", description: "", tags: [] }],
    policy: { timeoutSec: { max: maxSec } },
    settings: {},
  };
}

export interface StackOptions extends Partial<Omit<SluiceStackProps, "cloud" | "functions">> {
  /** As in `agents.yaml`. */
  readonly cloud?: unknown;
  /** What stands under `function`, by agent. */
  readonly functions?: Readonly<Record<string, unknown>>;
}

/** The stack without its bundles. */
export function stackWith({ cloud = {}, functions = {}, ...props }: StackOptions = {}): SluiceStack {
  const own = Object.keys(functions);
  const deployment = props.deployment ?? deploymentOf("support", ...own);
  const config = cloudConfig.parse(cloud);
  const app = checkedApp(mkdtempSync(join(scratch, "out-")));
  return new SluiceStack(app, stackName(deployment.deployment, config.stage), {
    deployment,
    cloud: config,
    functions: new Map(own.map((id) => [id, agentFunction.parse(functions[id])])),
    bundles: bundles(own),
    ...props,
  });
}

const resource = z.object({
  Properties: z.record(z.string(), z.unknown()).default({}),
  DeletionPolicy: z.string().optional(),
});
export type Resource = z.infer<typeof resource>;

/** All resources of a type, in the order of the template. */
export function resources(template: Template, type: string): Resource[] {
  return z.array(resource).parse(Object.values(template.findResources(type)));
}

const statement = z.object({
  Action: z.union([z.string(), z.array(z.string())]).transform((of) => [of].flat()),
  Effect: z.enum(["Allow", "Deny"]),
  Resource: z.unknown(),
});
const policies = z.object({
  ManagedPolicyArns: z.undefined("expected no managed policy").optional(),
  Policies: z.array(z.object({ PolicyDocument: z.object({ Statement: z.array(statement) }) })).default([]),
});

/** What a role's inline policies say; those of the one role whose logical id begins so. */
export function statementsOf(template: Template, idPrefix: string): z.infer<typeof statement>[] {
  const roles = Object.entries(template.findResources("AWS::IAM::Role"));
  const found = roles.filter(([id]) => new RegExp(`^${idPrefix}[0-9A-F]{8}$`).test(id));
  if (found.length !== 1) throw new Error(`${found.length} roles ${idPrefix}, of ${roles.map(([id]) => id)}`);
  return policies.parse(found[0]?.[1].Properties).Policies.flatMap((of) => of.PolicyDocument.Statement);
}

/** All that a role's inline policies allow, sorted. */
export function actionsOf(template: Template, idPrefix: string): string[] {
  const statements = statementsOf(template, idPrefix).filter(({ Effect }) => Effect === "Allow");
  return [...new Set(statements.flatMap(({ Action }) => Action))].toSorted();
}
