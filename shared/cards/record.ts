import type { HostedAgent } from "../config/deployment.ts";
import { exposedSkills } from "../policy/exposed.ts";
import { BINDING } from "../wire/envelope.ts";
import { CARD_TTL_MS } from "./bucket-facts.ts";
import { fitted } from "./fit.ts";
import { publicUrl, sanitized } from "./sanitize.ts";

/** A skill as a card shows it. */
export interface CardSkill {
  /** `<channelRef>/<slug>`. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
}

/** An agent's card as it lies in the bucket `A2A_PEERS`, in its JSON form (docs/cards.md). */
export interface PeerRecord {
  readonly agentId: string;
  readonly instanceId: string;
  readonly card: {
    readonly name: string;
    readonly description: string;
    readonly version: string;
    readonly supportedInterfaces: readonly {
      readonly url: string;
      readonly protocolBinding: string;
      readonly protocolVersion: string;
    }[];
    readonly capabilities: Readonly<Record<string, boolean>>;
    readonly defaultInputModes: readonly string[];
    readonly defaultOutputModes: readonly string[];
    readonly skills: readonly CardSkill[];
  };
  readonly extendedCard: {
    readonly channel_ref: string;
    readonly runtime: "channel";
    readonly bot_agent_id: string;
    readonly display_name: string;
    readonly discord_guild_id?: string;
    readonly result_visibility_support: readonly string[];
  };
  /** RFC 3339. */
  readonly expiresAt: string;
  readonly publishedAt: string;
  readonly version: "1.0";
}

/** What is said of an agent beside what it says itself. */
export interface CardContext {
  readonly deployment: string;
  /** The guild whose members list the agent, if it is for one. */
  readonly guild?: string | undefined;
  /** Where NATS is, as URLs; the first that others can reach is shown. */
  readonly servers: readonly string[];
  /** The stack that publishes. */
  readonly instance: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What `input` of a skill reads: text, or data (docs/agents.md). */
const INPUT_MODES = ["text/plain", "application/json"];
const OUTPUT_MODES = ["text/plain", "application/json"];
/** What every peer asks for that names no skill, and its other name (docs/wire.md, skill ids). */
const USUAL_SKILLS = ["task", "general_task"];

/**
 * An agent's card. Its texts are as peers show them (sanitize.ts), and it is cut to what a bucket takes (fit.ts).
 *
 * No `discord_channel_id` is in it: a peer that knows the channel would ask that `channel_ref` be its own name of it.
 */
export function cardRecord(agent: HostedAgent, of: CardContext): PeerRecord {
  const { runtime, channelRef, displayName, description, version } = agent;
  const at = (ms: number) => new Date(ms).toISOString();
  return fitted({
    agentId: runtime,
    instanceId: of.instance,
    card: {
      name: runtime,
      description: sanitized(description),
      version: sanitized(version) || "unknown",
      supportedInterfaces: [
        {
          url: of.servers.map(publicUrl).find((url) => url !== "") ?? "",
          protocolBinding: BINDING,
          protocolVersion: "1.0",
        },
      ],
      // Plain truths only: what an A2A card lists as an object or a list is no record to its readers.
      capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: true },
      defaultInputModes: INPUT_MODES,
      defaultOutputModes: OUTPUT_MODES,
      skills: skillsOf(agent),
    },
    extendedCard: {
      channel_ref: channelRef,
      runtime: "channel",
      bot_agent_id: of.deployment,
      display_name: sanitized(displayName) || runtime,
      ...(of.guild !== undefined && { discord_guild_id: of.guild }),
      result_visibility_support: ["proxy", "transparent"],
    },
    expiresAt: at(of.now + CARD_TTL_MS),
    publishedAt: at(of.now),
    version: "1.0",
  });
}

/** The skills that are shown to peers, the usual one first: what is cut goes from the end. */
function skillsOf(agent: HostedAgent): CardSkill[] {
  const shown = exposedSkills(agent, agent.policy);
  const isUsual = ({ slug }: { slug: string }) => USUAL_SKILLS.includes(slug);
  return [...shown.filter(isUsual), ...shown.filter((of) => !isUsual(of))].map(
    ({ slug, name, description, tags, inputModes, outputModes }) => ({
      id: `${agent.channelRef}/${slug}`,
      name: sanitized(name) || slug,
      description: sanitized(description),
      tags: tags.map(sanitized).filter((tag) => tag !== ""),
      inputModes: inputModes ?? INPUT_MODES,
      outputModes: outputModes ?? OUTPUT_MODES,
    }),
  );
}
