import type { DeploymentConfig, HostedAgent } from "../config/deployment.ts";
import { type ExposedSkill, exposedSkills } from "../policy/exposed.ts";
import { BINDING } from "../wire/envelope.ts";
import { type Identity, identityExtension } from "./identity.ts";

/** An agent's card as A2A 1.0 has it (§4.4.1), as far as ours have it; in JSON as it stands. */
export interface AgentCard {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly supportedInterfaces: readonly AgentInterface[];
  readonly provider?: AgentProvider;
  readonly capabilities: AgentCapabilities;
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
}

/** A2A 1.0 §4.4.6: where an agent is, and how it is spoken to. */
export interface AgentInterface {
  readonly url: string;
  readonly protocolBinding: string;
  /** On NATS the agent's runtime id: to whom a task's subject is addressed (docs/wire.md). */
  readonly tenant?: string;
  readonly protocolVersion: string;
}

/** A2A 1.0 §4.4.2. */
export interface AgentProvider {
  readonly url: string;
  readonly organization: string;
}

/** A2A 1.0 §4.4.3. */
export interface AgentCapabilities {
  readonly streaming: boolean;
  readonly pushNotifications: boolean;
  readonly extendedAgentCard: boolean;
  readonly extensions?: readonly AgentExtension[];
}

/** A2A 1.0 §4.4.4. */
export interface AgentExtension {
  readonly uri: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** A2A 1.0 §4.4.5. */
export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** Where they are others than the card's. */
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
}

/** What a card says besides what the agent's configuration does. */
export interface CardFacts {
  /** Who the deployment is; without it the card tells no identity. */
  readonly identity?: Identity;
  /** Where NATS is, when the functions are told other servers than the deployment's. */
  readonly servers?: readonly string[];
  /** Further interfaces, the preferred ones first (A2A 1.0 §8.3.1); that of NATS comes last. */
  readonly interfaces?: readonly AgentInterface[];
  /** What can be done over these. Of NATS alone, nothing of it. */
  readonly capabilities?: Partial<
    Pick<AgentCapabilities, "streaming" | "pushNotifications" | "extendedAgentCard">
  >;
  readonly extensions?: readonly AgentExtension[];
  readonly provider?: AgentProvider;
}

/** The version of A2A that cards and interfaces are of. */
const A2A_VERSION = "1.0";
const MODES = ["text/plain", "application/json"];

/** What is longer is cut; beyond the numbers it is left out. */
const MAX_CARD_NAME = 128;
const MAX_CARD_DESCRIPTION = 2_048;
const MAX_CARD_VERSION = 64;
const MAX_CARD_INTERFACES = 16;
const MAX_CARD_EXTENSIONS = 32;
const MAX_CARD_SKILLS = 128;
const MAX_SKILL_DESCRIPTION = 1_024;
const MAX_SKILL_TAGS = 16;
const MAX_SKILL_TAG = 64;

/**
 * An agent's card, unsigned: the same facts as its record on NATS. No member is ever empty, so that every
 * implementation signs the same bytes (presence.ts).
 *
 * @param agent with the policy in force; whether it may be found at all is for the caller to ask
 */
export function agentCard(
  agent: HostedAgent,
  { nats }: Pick<DeploymentConfig, "nats">,
  facts: CardFacts = {},
): AgentCard {
  const { identity, servers = nats.servers, interfaces = [], capabilities, provider } = facts;
  const extensions = [
    ...(identity === undefined ? [] : [identityExtension(identity)]),
    ...(facts.extensions ?? []),
  ];
  const name = told(agent.displayName, agent.id, MAX_CARD_NAME);
  return {
    name,
    description: told(agent.description, name, MAX_CARD_DESCRIPTION),
    version: told(agent.version, "1.0.0", MAX_CARD_VERSION),
    supportedInterfaces: [...interfaces, ...servers.map((url) => natsInterface(url, agent.runtime))].slice(
      0,
      MAX_CARD_INTERFACES,
    ),
    ...(provider !== undefined && { provider }),
    capabilities: {
      streaming: capabilities?.streaming ?? false,
      pushNotifications: capabilities?.pushNotifications ?? false,
      extendedAgentCard: capabilities?.extendedAgentCard ?? false,
      ...(extensions.length > 0 && { extensions: extensions.slice(0, MAX_CARD_EXTENSIONS) }),
    },
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: exposedSkills(agent, agent.policy)
      .slice(0, MAX_CARD_SKILLS)
      .map((of) => skillOf(agent.channelRef, of)),
  };
}

function natsInterface(url: string, runtime: string): AgentInterface {
  return { url, protocolBinding: BINDING, tenant: runtime, protocolVersion: A2A_VERSION };
}

function skillOf(channelRef: string, skill: ExposedSkill): AgentSkill {
  const { slug, name, description, tags, inputModes, outputModes } = skill;
  const shown = told(name, slug, MAX_CARD_NAME);
  const kept = tags.slice(0, MAX_SKILL_TAGS).flatMap((tag) => {
    const text = told(tag, "", MAX_SKILL_TAG);
    return text === "" ? [] : [text];
  });
  return {
    id: `${channelRef}/${slug}`,
    name: shown,
    description: told(description, shown, MAX_SKILL_DESCRIPTION),
    // At least one is required (A2A 1.0 §4.4.5, §5.7).
    tags: kept.length > 0 ? kept : [slug],
    ...(inputModes && { inputModes }),
    ...(outputModes && { outputModes }),
  };
}

/** A text for a card: never empty, never too long, and one that canonical JSON can hold. */
function told(text: string, otherwise: string, max: number): string {
  // In this order: a cut may halve a surrogate pair, which is then taken for what it is no more.
  const cut = text.toWellFormed().trim().slice(0, max);
  const whole = cut.isWellFormed() ? cut : cut.slice(0, -1);
  return whole === "" ? otherwise : whole;
}
