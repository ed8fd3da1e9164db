import { createHash } from "node:crypto";
import { type App, Stack, type StackProps, Validations } from "aws-cdk-lib";
import packageJson from "../package.json" with { type: "json" };
import type { AgentFunctions } from "../shared/config/agents-yaml.ts";
import { type CloudConfig, cloudConfig, MAIN_STAGE } from "../shared/config/cloud.ts";
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import { credentialPlaces } from "../shared/remotes/credentials.ts";
import { BridgeService } from "./bridge-service.ts";
import type { Bundles, FunctionName } from "./bundle.ts";
import { SluiceFunction } from "./functions.ts";
import { Network } from "./network.ts";
import { Observability } from "./observability/index.ts";
import { declareOutputs } from "./outputs.ts";
import type { Nats, NatsOverride, Parts } from "./parts.ts";
import { type AgentQueue, QueuePair, type Queues, sharedQueues } from "./queues.ts";
import { Schedules } from "./schedules.ts";
import { SigningKeySecret } from "./signing-key.ts";
import { VALUES_KEPT_DAYS } from "./sizes.ts";
import { Storage } from "./storage.ts";

export interface SluiceStackProps extends StackProps {
  readonly deployment: DeploymentConfig;
  /** How it is put into the account. Default: as `agents.yaml` without a section `cloud`. */
  readonly cloud?: CloudConfig;
  /** The work functions that agents have of their own, by the agents' ids. */
  readonly functions?: AgentFunctions;
  readonly bundles: Omit<Bundles, "inputs">;
  readonly nats?: NatsOverride;
}

/** One stage of a deployment of Sluice. */
export class SluiceStack extends Stack {
  readonly parts: Parts;
  /** All functions; without that of the bridge where it is a service. */
  readonly functions: readonly SluiceFunction[];
  readonly bridge: SluiceFunction | BridgeService;
  readonly observability: Observability;

  constructor(app: App, id: string, props: SluiceStackProps) {
    const { deployment, cloud = cloudConfig.parse({}), functions = new Map(), bundles } = props;
    const tags = { "sluice:deployment": deployment.deployment, "sluice:stage": cloud.stage };
    super(app, id, { ...props, tags: { ...tags, ...props.tags }, terminationProtection: cloud.keepData });
    this.parts = this.#parts(props, cloud, functions);
    const { parts } = this;

    const make = (kind: FunctionName, description: string) =>
      new SluiceFunction(this, kind, { kind, description, folder: bundles.folders[kind], parts });
    this.bridge =
      cloud.bridge === "fargate"
        ? this.#service(bundles)
        : make("bridge", "Forwards NATS messages to the queues");
    const sweep = make("sweep", "Picks up whatever is due and nobody holds");
    const cards = make("cards", "Shows the agents' cards, and looks for those of others");
    const bridge = this.bridge instanceof SluiceFunction ? [this.bridge] : [];
    this.functions = [
      ...bridge,
      make("admit", "Decides each task once"),
      make("control", "Answers cancel and status"),
      make("events", "Takes in what comes of tasks that were handed on"),
      make("work", "Runs the agents' handlers"),
      ...parts.queues.own.flatMap((queue) => this.#ownWork(queue, functions, bundles)),
      sweep,
      cards,
    ];
    new Schedules(this, "Schedules", [...bridge, sweep, cards]);
    const service = this.bridge instanceof BridgeService ? [this.bridge] : [];
    this.observability = new Observability(this, "Observability", {
      parts,
      functions: this.functions,
      logGroups: [...this.functions, ...service].map(({ logGroup }) => logGroup),
      alarms: cloud.alarms,
    });

    const identity = { deployment: deployment.deployment, stage: cloud.stage, version: packageJson.version };
    declareOutputs(this, identity, parts, this.#computing());
  }

  #parts({ deployment, nats }: SluiceStackProps, cloud: CloudConfig, functions: AgentFunctions): Parts {
    const place = natsOf(deployment, nats);
    this.#warnOfThisMachine(place, deployment.remotes);
    const remotes = (deployment.remotes ?? []).map(({ url }) => url);
    const placement =
      cloud.network &&
      new Network(this, "Network", { network: cloud.network, cloud, servers: place.servers, remotes })
        .placement;
    return {
      storage: new Storage(this, "Storage", {
        valuesExpireDays: valuesExpireDays(deployment),
        keep: cloud.keepData,
      }),
      queues: this.#queues(deployment, functions),
      signingKey: new SigningKeySecret(this, "SigningKey", { keep: cloud.keepData }),
      nats: place,
      credentials: credentialPlaces(deployment.remotes ?? []),
      fronts: frontsOf(deployment),
      logRetentionDays: cloud.logRetentionDays,
      ...(placement !== undefined && { placement }),
    };
  }

  #queues({ agents }: DeploymentConfig, functions: AgentFunctions): Queues {
    const own = agents.flatMap(({ id, runtime }): AgentQueue[] => {
      const config = functions.get(id);
      if (config === undefined) return [];
      return [{ agentId: id, runtime, pair: new QueuePair(this, `Work-${id}`, config.timeoutSec) }];
    });
    return { ...sharedQueues(this), own };
  }

  #ownWork(
    queue: AgentQueue,
    functions: AgentFunctions,
    { workFolders }: Pick<Bundles, "workFolders">,
  ): SluiceFunction[] {
    const { agentId } = queue;
    const config = functions.get(agentId);
    const folder = workFolders.get(agentId);
    if (config === undefined || folder === undefined)
      throw new Error(`no bundle for the function of ${agentId}`);
    const description = `Runs the handlers of ${agentId}`;
    const own = { queue, config };
    return [
      new SluiceFunction(this, `work-${agentId}`, {
        kind: "work",
        description,
        folder,
        parts: this.parts,
        own,
      }),
    ];
  }

  #service({ serviceFolder }: Pick<Bundles, "serviceFolder">): BridgeService {
    const { placement } = this.parts;
    // The configuration has been refused without one (shared/config/cloud.ts).
    if (placement === undefined) throw new Error("cloud.bridge: fargate needs cloud.network");
    return new BridgeService(this, "bridge", { folder: serviceFolder, parts: this.parts, placement });
  }

  #computing() {
    const named = this.functions.map((of) => [of.node.id, of] as const);
    const service = this.bridge instanceof BridgeService ? [["bridge", this.bridge] as const] : [];
    return {
      functions: Object.fromEntries(named.map(([name, of]) => [name, of.function.functionName])),
      logGroups: Object.fromEntries(
        [...named, ...service].map(([name, of]) => [name, of.logGroup.logGroupName]),
      ),
    };
  }

  /** What only this machine has serves `npm start` well, and nobody in the cloud. */
  #warnOfThisMachine({ servers, credentials }: Nats, remotes: DeploymentConfig["remotes"] = []): void {
    if (credentials.startsWith("file:"))
      Validations.of(this).addWarning(
        "sluice:credentials-file",
        `nats.credentials: ${credentials} is a file of this machine, which functions in the cloud cannot read; expected secret:NAME there`,
      );
    const ours = remotes.filter(({ auth }) => auth !== undefined && !auth.credentials.startsWith("secret:"));
    if (ours.length > 0)
      Validations.of(this).addWarning(
        "sluice:remote-credentials",
        `remotes: the credentials of ${ours.map(({ name }) => name).join(", ")} are in a file or a variable of this machine, which functions in the cloud cannot read; expected secret:NAME there`,
      );
    const loopback = servers.find((url) => /^\w+:\/\/(localhost|127\.|\[::1\])/.test(url));
    if (loopback !== undefined)
      Validations.of(this).addWarning(
        "sluice:nats-loopback",
        `nats.servers: ${loopback} is this machine, which functions in the cloud cannot reach; expected a server that they can`,
      );
  }
}

/** A deployment's name that stands in its stacks' names as it is. */
const PLAIN = /^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/;

/**
 * The name of a stage's stack. CloudFormation allows letters, digits and `-` (API reference, CreateStack). No two
 * deployments or stages share one: the deployment `acme-dev` is `sluice-acme-dev`, the stage `dev` of `acme` is
 * `sluice-acme--dev`. A deployment with other characters, or whose name could be taken for a stage's, has `--0` and a
 * digest in its stack's name: no stage begins with a digit.
 */
export function stackName(deployment: string, stage: string = MAIN_STAGE): string {
  const name = PLAIN.test(deployment) ? deployment : `${squeezed(deployment)}--0${digestOf(deployment)}`;
  return stage === MAIN_STAGE ? `sluice-${name}` : `sluice-${name}--${stage}`;
}

function squeezed(deployment: string): string {
  return deployment.replace(/[_-]+/g, "-").replace(/^-|-$/g, "");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Where it is told who we are to the remote agents that agents of ours are. */
function frontsOf({ agents, remotes = [] }: DeploymentConfig): Parts["fronts"] {
  return new Map(
    agents.flatMap(({ id, remote }) =>
      remote === undefined ? [] : [[id, credentialPlaces(remotes.filter(({ name }) => name === remote))]],
    ),
  );
}

function natsOf({ nats }: DeploymentConfig, override: NatsOverride = {}): Nats {
  return {
    servers: override.servers?.split(",") ?? nats.servers,
    credentials: override.credentials ?? nats.credentials,
    override,
  };
}

/** A value must outlive the longest task that any agent may be given, and the time that its record is kept. */
function valuesExpireDays(deployment: DeploymentConfig): number {
  const longestSec = Math.max(0, ...deployment.agents.map(({ policy }) => policy.timeoutSec.max));
  return Math.ceil(longestSec / 86_400) + VALUES_KEPT_DAYS;
}
