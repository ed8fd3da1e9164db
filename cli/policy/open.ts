import { existsSync, readFileSync } from "node:fs";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { ConfigError } from "../../shared/config/config-error.ts";
import type { HostedAgent } from "../../shared/config/deployment.ts";
import { fields } from "../../shared/config/host-agent.ts";
import { canonicalPolicy, type LegacyField } from "../../shared/config/legacy-policy.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { readYaml } from "../../shared/config/yaml-source.ts";
import type { PolicyField } from "../../shared/policy/changes.ts";
import { dynamoPolicies, type PolicyStore } from "../../shared/policy/dynamodb-policies.ts";
import { effectivePolicy } from "../../shared/policy/runtime-policy.ts";
import { stackAgent } from "../agent-name.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Home } from "../home.ts";
import { clientSettings, findPlace, type Place, reach } from "../place.ts";

/** The policy of an agent of a stack, to be read and changed. */
export interface OpenPolicy extends Disposable {
  readonly place: Place;
  /** The agent with its policy as `agents.yaml` has it. */
  readonly agent: HostedAgent;
  readonly store: PolicyStore;
  /** Where the file says a field of the agent; nothing where the value is the product's own. */
  writtenAt(field: PolicyField): string | undefined;
  /** Fields that are written by older names, and where. */
  readonly legacy: readonly (LegacyField & { readonly where: string })[];
}

/**
 * Opens the policy of an agent. What the file says is read in this folder: it is taken to be what is deployed.
 *
 * @throws CliError as `findPlace`; `usage` when there is no such agent, or the file is not as expected
 */
export async function openPolicy(home: Home, name: string, stack?: string): Promise<OpenPolicy> {
  const place = await findPlace(home, stack);
  const { id } = stackAgent(home, place, name);
  const { hosted, legacy } = await fileOf(home, id);
  const raw = rawOf(home, id);
  const store = openPolicies(place);
  return {
    place,
    agent: hosted,
    store,
    writtenAt: (field) => raw.find(({ names }) => names.includes(field))?.where,
    legacy,
    [Symbol.dispose]: () => store[Symbol.dispose](),
  };
}

/** What has been changed of the policies of a stack's agents. */
export function openPolicies(place: Place): PolicyStore & Disposable {
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: place.outputs.TableName };
  return {
    ...reached(place.label, dynamoPolicies(access)),
    [Symbol.dispose]: () => dynamodb.destroy(),
  };
}

/**
 * Agents with the policies in force, as a stack tells them.
 *
 * @throws CliError as {@link reach}
 */
export async function inForce<A extends HostedAgent>(place: Place, agents: readonly A[]): Promise<A[]> {
  using store = openPolicies(place);
  const changed = await store.policiesOf(agents.map(({ runtime }) => runtime));
  return agents.map((agent) => ({
    ...agent,
    policy: effectivePolicy(agent.policy, changed.get(agent.runtime)),
  }));
}

async function fileOf(home: Home, id: string) {
  try {
    const { deployment, legacy } = readAgentsYaml(home.config, await loadAgents(home.agentsDir));
    const hosted = deployment.agents.find((agent) => agent.id === id);
    if (hosted === undefined)
      throw new CliError(
        EXIT.usage,
        `agent "${id}" has no file in ${home.agentsDir}: its policy is not known here`,
      );
    const told = ["defaults", id].flatMap((where) =>
      (legacy.get(where) ?? []).map((of) => ({ ...of, where: where === id ? `agents.${id}` : where })),
    );
    return { hosted, legacy: told };
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(EXIT.usage, error.message, { cause: error });
    throw error;
  }
}

/** The fields that are written for an agent, those that count first, by the names that they have now. */
function rawOf({ config }: Home, id: string): { where: string; names: readonly string[] }[] {
  const value = existsSync(config) ? readYaml(config, readFileSync(config, "utf8")).value : {};
  const file = fields.catch({}).parse(value);
  const agents = fields.catch({}).parse(file.agents);
  return [
    { where: `agents.${id}`, of: agents[id] },
    { where: "defaults", of: file.defaults },
  ].map(({ where, of }) => ({
    where,
    names: Object.entries(canonicalPolicy(fields.catch({}).parse(of)).fields)
      .filter(([, value]) => value !== null)
      .map(([name]) => name),
  }));
}

/** The same store, whose troubles are told as a person's command does. */
function reached(label: string, store: PolicyStore): PolicyStore {
  return {
    policyOf: (...of) => reach(label, store.policyOf(...of)),
    policiesOf: (...of) => reach(label, store.policiesOf(...of)),
    change: (...of) => reach(label, store.change(...of)),
    history: (...of) => reach(label, store.history(...of)),
    plan: (...of) => reach(label, store.plan(...of)),
    planOf: (...of) => reach(label, store.planOf(...of)),
  };
}
