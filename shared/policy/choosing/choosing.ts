import type { PeersKnown } from "../../cards/peers.ts";
import type { DeploymentConfig } from "../../config/deployment.ts";
import type { AgentPolicy } from "../../config/policy.ts";
import { errorFields, type Telemetry } from "../../telemetry/index.ts";
import { mayDelegate, skillKey } from "../delegation.ts";
import { type Doors, refusing } from "./acceptance.ts";
import { Breaker } from "./breaker.ts";
import { type Candidates, candidatesOf, GENERAL_SKILL, type Hosted } from "./candidates.ts";
import type { Chosen, PassedOver, Refusal } from "./choose.ts";
import { ChoiceError, Chooser } from "./chooser.ts";
import { type Circuit, circuitRules } from "./circuit.ts";
import { Cooldowns, type Cooling } from "./cooldown.ts";
import { Escalation, escalationRules, type Refusals } from "./escalation.ts";
import type { ItemStore } from "./items.ts";
import { OutcomeBook, type Outcomes, type Result } from "./outcomes.ts";
import { meantBy } from "./registry.ts";

/** What is kept to choose by (docs/table.md, choosing). */
export interface ChoosingStores {
  readonly outcomes: ItemStore<Outcomes>;
  readonly circuits: ItemStore<Circuit>;
  readonly cooldowns: ItemStore<Cooling>;
  readonly refusals: ItemStore<Refusals>;
}

export interface ChoosingOptions {
  readonly deployment: Pick<DeploymentConfig, "choosing"> & { readonly agents: readonly Hosted[] };
  readonly stores: ChoosingStores;
  /** What is known of peers, of a few seconds ago at the earliest. */
  readonly peers: () => Promise<PeersKnown>;
  /** The policies in force of our agents, of a few seconds ago at the earliest. */
  readonly policies: Doors;
  readonly now: () => number;
  /** How much faster than normal the deployment lives. */
  readonly scale: number;
  readonly telemetry: Pick<Telemetry, "info" | "warn" | "error" | "count">;
}

/** What a step hands on, and for whom. */
export interface Handing {
  /** The agent that hands it on, and the task and step in which it does. */
  readonly runtime: string;
  readonly taskId: string;
  readonly step: string;
  /** Whom the step names: a runtime, or what one agent alone is called; nobody when it is to be chosen. */
  readonly to?: string | undefined;
  /** Where the runtime that the step names takes its tasks, if the step says so itself. */
  readonly channelRef?: string | undefined;
  /** A slug. */
  readonly skill?: string | undefined;
  readonly subject?: string | undefined;
  /** How often it was handed on before. */
  readonly hops: number;
  /** To whom the agent may hand tasks on. */
  readonly targets: AgentPolicy["delegateTargets"];
  /** Gives a number from 0 to below 1. */
  readonly random: () => number;
}

/** Who gets it, and where; `why` says what for. */
export interface Addressee extends Pick<Chosen, "why"> {
  readonly to: string;
  readonly channelRef: string;
  /** As the agent calls it. */
  readonly skill: string;
  readonly hops: number;
  readonly passedOver: readonly PassedOver[];
}

/** Chooses who gets what our agents hand on, by all that is known, and remembers how it has come out (docs/choosing.md). */
export class Choosing {
  readonly #of: ChoosingOptions;
  readonly #outcomes: OutcomeBook;
  readonly #breaker: Breaker;
  readonly #cooldowns: Cooldowns;
  readonly #escalation: Escalation;

  constructor(options: ChoosingOptions) {
    this.#of = options;
    const { stores, now, scale, telemetry, deployment } = options;
    this.#outcomes = new OutcomeBook({ store: stores.outcomes, now, scale });
    this.#breaker = new Breaker({ store: stores.circuits, now, rules: circuitRules(scale), telemetry });
    const seconds = deployment.choosing?.cooldownSec ?? {};
    this.#cooldowns = new Cooldowns({ store: stores.cooldowns, now, seconds, scale });
    this.#escalation = new Escalation({ store: stores.refusals, now, rules: escalationRules(scale) });
  }

  /** Who gets what a step hands on, or why nobody does. */
  async choose(handing: Handing): Promise<Addressee | { readonly refused: Refusal }> {
    const { runtime, taskId, step, to, skill, subject, hops } = handing;
    const candidates = await this.#candidates(handing);
    try {
      const { chosen, ...made } = await this.#chooser(handing, candidates).choose({
        runtime,
        ...(to !== undefined && { targets: [to] }),
        skill,
        subject,
        by: `${taskId} ${step}`,
        hops,
        one: true,
        fields: { taskId, step },
      });
      const [only] = chosen;
      const address = only && addressAt(candidates, only.agent, handing);
      if (only === undefined || address === undefined) throw new TypeError("a choice without an agent");
      return { to: only.agent, why: only.why, ...address, ...made };
    } catch (error) {
      if (error instanceof ChoiceError) return { refused: error.refusal };
      throw error;
    }
  }

  /** Remembers how what an agent was chosen for has come out; to have it forgotten is no reason to fail. */
  async note(executor: string, result: Result): Promise<void> {
    try {
      await this.#outcomes.note(executor, result);
    } catch (error) {
      this.#of.telemetry.warn("an outcome could not be noted", { executor, ...errorFields(error) });
    }
  }

  /** All who may be asked; cards are looked at only where the file does not say who is meant. */
  async #candidates({ runtime: asking, to, channelRef }: Handing): Promise<Candidates> {
    const { deployment, peers } = this.#of;
    if (to !== undefined && channelRef !== undefined)
      return candidatesOf({ deployment, asking, named: { agent: to, channelRef } });
    const ours = candidatesOf({ deployment, asking });
    if (to !== undefined && meantBy(ours.registry, to).length > 0) return ours;
    return candidatesOf({ deployment, asking, known: await peers() });
  }

  /** Who of ours is not drawn, for it would say no. Who is named says so itself: what it answers tells more. */
  async #refusing(handing: Handing, candidates: Candidates, agents: ReadonlySet<string>) {
    const { deployment, policies } = this.#of;
    const concerned =
      handing.to === undefined ? deployment.agents.filter((of) => agents.has(of.runtime)) : [];
    const errands = concerned.flatMap((agent) => {
      const address = addressAt(candidates, agent.runtime, handing);
      return address === undefined ? [] : [{ agent, skill: address.skill }];
    });
    return await refusing(policies, handing.runtime, errands);
  }

  #chooser(handing: Handing, candidates: Candidates): Chooser {
    const { targets, random } = handing;
    const remotes = new Map(
      this.#of.deployment.agents.flatMap(({ runtime, remote }) =>
        remote === undefined ? [] : [[runtime, remote]],
      ),
    );
    return new Chooser({
      registry: async () => candidates.registry,
      facts: async (agents) => {
        const refuse = await this.#refusing(handing, candidates, agents);
        return (agent) => {
          const address = addressAt(candidates, agent, handing);
          const allowed = address !== undefined && mayDelegate(targets, { to: agent, ...address });
          return { ...candidates.factsOf(agent), allowed, refuses: refuse.has(agent) };
        };
      },
      outcomes: this.#outcomes,
      // Calls go through circuits only where there is a connection that may fail: to agents over HTTP.
      breaker: {
        openUntil: async (agents) => {
          const open = await this.#breaker.openUntil(
            [...agents].flatMap((agent) => remotes.get(agent) ?? []),
          );
          return (agent) => open(remotes.get(agent) ?? "");
        },
      },
      cooldowns: this.#cooldowns,
      escalation: this.#escalation,
      telemetry: this.#of.telemetry,
      random,
    });
  }
}

/** Where it goes at an agent. The default has not the skill, or it would be a candidate: it is asked for its general one. */
function addressAt(
  { registry, addressOf }: Candidates,
  agent: string,
  { to, skill = GENERAL_SKILL }: Handing,
) {
  const has = registry.agents.get(agent)?.skills?.has(skillKey(skill)) === true;
  return addressOf(agent, to === undefined && !has ? GENERAL_SKILL : skill);
}
