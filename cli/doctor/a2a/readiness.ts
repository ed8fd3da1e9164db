import { readFile } from "node:fs/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { NatsConnection } from "@nats-io/transport-node";
import { dynamoPeers } from "../../../shared/cards/dynamodb-peers.ts";
import { type PeersKnown, peersKnown } from "../../../shared/cards/peers.ts";
import { type OperatorConfig, readAgentsYaml } from "../../../shared/config/agents-yaml.ts";
import { ConfigError } from "../../../shared/config/config-error.ts";
import type { HostedAgent } from "../../../shared/config/deployment.ts";
import { loadAgents } from "../../../shared/config/load-agents.ts";
import type { RemoteConfig } from "../../../shared/config/remotes.ts";
import { readCredentials } from "../../../shared/nats/credentials.ts";
import { CliError } from "../../errors.ts";
import type { Home, Where } from "../../home.ts";
import { openNats } from "../../nats.ts";
import { readBucket } from "../../peers.ts";
import { clientSettings, type Place, reach } from "../../place.ts";
import { inForce } from "../../policy/open.ts";
import { examine, type Finding } from "../finding.ts";
import { unconnected } from "../nats.ts";
import { inSecretsManager } from "../secrets.ts";
import { cardFindings } from "./cards.ts";
import { loginFinding } from "./login.ts";
import { peerFindings } from "./peers.ts";
import { permissionFinding } from "./permissions.ts";
import { type Governed, guildFinding, legacyFindings, policyFindings } from "./policies.ts";
import { credentialFinding, remoteFindings } from "./remotes.ts";

/** An agent by the policy in force, and by that of the file. */
type Ruled = HostedAgent & Governed;

/**
 * Whether peers can work with our agents, and ours with them. A NATS that is not reached is told as the rest of `doctor`
 * tells it.
 *
 * @param where NATS; nothing where that is not known
 */
export async function checkReadiness(
  home: Home,
  place: Place | undefined,
  where: Where | undefined,
): Promise<readonly Finding[]> {
  const file = await fileOf(home);
  if (file === undefined) return [];
  const { deployment, legacy } = file;
  const remotes = deployment.remotes ?? [];
  const allow = "allow dynamodb:BatchGetItem, dynamodb:GetItem and dynamodb:Query on the table, to know";
  let agents: readonly Ruled[] = deployment.agents.map((agent) => ({ ...agent, written: agent.policy }));
  const unread = await examine("policies in force", allow, async () => {
    if (place !== undefined) agents = await inForce(place, agents);
    return [];
  });
  const [nats, credentials, peers] = await Promise.all([
    where === undefined ? [] : checkOnNats(home, where, agents),
    checkCredentials(remotes, place),
    // A table that is not read for one is not for the other, and that is one thing to mend.
    place === undefined || unread.length > 0
      ? []
      : examine("peers", allow, async () => peersOf(await knownTo(place, remotes), agents)),
  ]);
  const guild = guildFinding(deployment.discovery?.discordGuildId);
  return [
    ...unread,
    ...policyFindings(agents),
    guild,
    ...legacyFindings(legacy),
    ...nats,
    ...credentials,
    ...peers,
  ];
}

/** The operator's file; nothing where it is not as expected, which is told of the agents. */
async function fileOf({ config, agentsDir }: Home): Promise<OperatorConfig | undefined> {
  try {
    return readAgentsYaml(config, await loadAgents(agentsDir));
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

async function checkOnNats(
  { deployment }: Home,
  where: Where,
  agents: readonly Ruled[],
): Promise<readonly Finding[]> {
  let nc: NatsConnection;
  try {
    nc = await openNats(where, deployment);
  } catch (error) {
    if (error instanceof CliError) return [unconnected(where, error)];
    throw error;
  }
  try {
    const encrypted = nc.info?.tls_required === true;
    const login = loginFinding(await readCredentials(where.credentials), {
      servers: where.servers,
      encrypted,
    });
    const served = agents.map(({ runtime, written }) => ({
      runtime,
      delegates: written.delegateTargets.length > 0,
    }));
    const [permission, cards] = await Promise.all([
      permissionFinding(nc, { deployment, agents: served }),
      examine("cards", "see that the bucket A2A_PEERS can be read", async () => {
        const runtimes = served.map(({ runtime }) => runtime);
        return cardFindings(agents, (await readBucket(nc, runtimes)).entries);
      }),
    ]);
    return [login, permission, ...cards];
  } finally {
    await nc.close();
  }
}

async function checkCredentials(
  remotes: readonly RemoteConfig[],
  place: Place | undefined,
): Promise<readonly Finding[]> {
  const look = {
    deployed: place?.deployed !== undefined,
    env: process.env,
    ofHost: place?.local?.credentialVariables,
    file: (path: string) => readFile(path, "utf8"),
    secret: inSecretsManager,
  };
  const found = await Promise.all(
    remotes.map((remote) =>
      examine(`credentials of ${remote.name}`, "allow secretsmanager:DescribeSecret, to know", async () => [
        await credentialFinding(remote, look),
      ]),
    ),
  );
  return found.flat();
}

async function knownTo(place: Place, remotes: readonly RemoteConfig[]): Promise<PeersKnown> {
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  try {
    const access = { client: DynamoDBDocumentClient.from(dynamodb), table: place.outputs.TableName };
    return await reach(place.label, peersKnown(dynamoPeers(access), remotes, Date.now()));
  } finally {
    dynamodb.destroy();
  }
}

function peersOf(known: PeersKnown, agents: readonly Ruled[]): Finding[] {
  const now = Date.now();
  const remotes = known.peers.filter(({ transport }) => transport === "http");
  return [...peerFindings(known, agents, now), ...remotes.flatMap((of) => remoteFindings(of, now))];
}
