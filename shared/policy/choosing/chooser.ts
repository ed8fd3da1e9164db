import type { LogFields } from "../../telemetry/fields.ts";
import { errorFields, type Telemetry } from "../../telemetry/index.ts";
import { listed, quoted } from "../listed.ts";
import type { Breaker } from "./breaker.ts";
import {
  type Choice,
  choose,
  concerned,
  isNamed,
  type Refusal,
  refuse,
  type Standings,
  type Wanted,
} from "./choose.ts";
import type { Cooldowns } from "./cooldown.ts";
import type { Escalation } from "./escalation.ts";
import { nextHop } from "./hops.ts";
import type { OutcomeBook } from "./outcomes.ts";
import type { Registry } from "./registry.ts";
import type { Standing } from "./standing.ts";

/** How much of a name that a requester gives is logged, in characters. */
const MAX_LOGGED = 80;

type Made = Exclude<Choice, { readonly refused: Refusal }>;

/** A request to hand something on. */
export interface Request extends Wanted {
  /** The runtime id of the agent that asks. */
  readonly runtime: string;
  /** What it is about, for the skill's cooldown. */
  readonly subject?: string | undefined;
  /** Whose request it is, such as a task and its step: when it is repeated it finds no cooldown of its own. */
  readonly by?: string | undefined;
  /** How often it was handed on before; see hops.ts. */
  readonly hops: number;
  /** What log lines say besides. */
  readonly fields?: Pick<LogFields, "taskId" | "step"> | undefined;
}

/** What others know of an agent. */
export type Facts = Pick<Standing, "allowed" | "refuses" | "healthy" | "stale">;

export interface ChooserOptions {
  readonly registry: () => Promise<Registry>;
  /** What is known of agents, for an agent that asks and a skill. */
  readonly facts: (
    agents: ReadonlySet<string>,
    request: Pick<Request, "runtime" | "skill">,
  ) => Promise<(agent: string) => Facts>;
  readonly outcomes: Pick<OutcomeBook, "weights">;
  readonly breaker: Pick<Breaker, "openUntil">;
  readonly cooldowns: Pick<Cooldowns, "take">;
  readonly escalation: Pick<Escalation, "refused">;
  readonly telemetry: Pick<Telemetry, "info" | "warn" | "error" | "count">;
  /** Gives a number from 0 to below 1. */
  readonly random: () => number;
}

/** Nobody was chosen; the refusal says why, and who else there is. */
export class ChoiceError extends Error {
  override readonly name = "ChoiceError";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** Chooses with all that is known and kept, and tells an operator of what is refused (docs/choosing.md). */
export class Chooser {
  readonly #of: ChooserOptions;

  constructor(options: ChooserOptions) {
    this.#of = options;
  }

  /**
   * Who is asked, and how often it has been handed on with that.
   *
   * @throws ChoiceError when nobody is
   */
  async choose(request: Request): Promise<Made & { readonly hops: number }> {
    const choice = await this.#decide(request);
    if (!("refused" in choice)) return { ...choice, hops: request.hops + 1 };
    await this.#tell(request, choice.refused);
    throw new ChoiceError(choice.refused);
  }

  async #decide(request: Request): Promise<Choice> {
    if (nextHop(request.hops) === undefined)
      return refuse("hop_limit", `handed on ${request.hops} times already, which is as often as may be`);
    const { random, cooldowns } = this.#of;
    const registry = await this.#of.registry();
    const standings = await this.#standings(request, registry);
    const choice = choose(request, registry, standings, random);
    // Only what would be done rests: a refusal takes nobody's turn.
    if ("refused" in choice || request.skill === undefined) return choice;
    const { skill, subject, by } = request;
    const retryAt = await cooldowns.take({ skill, subject, by });
    if (retryAt === undefined) return choice;
    const about = subject === undefined ? "" : ` for ${quoted(subject)}`;
    const until = new Date(retryAt).toISOString();
    return refuse("cooldown", `${quoted(skill)}${about} rests until ${until}`, { retryAt });
  }

  async #standings(request: Request, registry: Registry): Promise<Standings> {
    const agents = concerned(request, registry);
    const { facts, outcomes, breaker } = this.#of;
    const [factsOf, weightOf, openUntil] = await Promise.all([
      facts(agents, request),
      // Who is named is asked however good it has been.
      outcomes.weights(isNamed(request) ? [] : agents),
      breaker.openUntil(agents),
    ]);
    return (agent) => ({ ...factsOf(agent), weight: weightOf(agent), openUntil: openUntil(agent) });
  }

  /** A refusal is logged and counted, and an operator told of those that come again and again. */
  async #tell(request: Request, { reason }: Refusal): Promise<void> {
    const { runtime, skill, targets = [] } = request;
    const { telemetry, escalation } = this.#of;
    const of = { runtime, outcome: reason };
    const fields = {
      ...request.fields,
      runtime,
      code: reason,
      ...(skill !== undefined && { skill: cut(skill) }),
      ...(targets.length > 0 && { executor: listed(targets.map(cut)) }),
    };
    telemetry.count("ChoicesRefused", 1, of);
    telemetry.info("nobody was chosen", fields);
    try {
      if (!(await escalation.refused([runtime, reason, skill ?? "", ...targets]))) return;
    } catch (error) {
      telemetry.warn("a refusal could not be counted", { ...fields, ...errorFields(error) });
      return;
    }
    telemetry.count("RefusalsEscalated", 1, of);
    // That somebody is impatient is no fault.
    telemetry[reason === "cooldown" ? "warn" : "error"]("refused again and again", fields);
  }
}

/** A requester's text in a log line. */
function cut(text: string): string {
  return text.slice(0, MAX_LOGGED);
}
