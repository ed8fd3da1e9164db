import * as z from "../../zod.ts";
import { change, type ItemStore, type Pause } from "./items.ts";

/** After this time an outcome counts half, in milliseconds; so the window is bounded without a list of what is in it. */
const HALF_LIFE_MS = 1_800_000;
/** Fewer outcomes than this are none: the last failure of an agent that is not asked any more is forgotten, too. */
const FORGOTTEN = 0.5;
/** What an agent says that an outcome has cost is its own word: no more than this is believed. */
const MAX_COST_USD = 1_000_000;
/** How long the item is kept after the last outcome: hardly anything is left of it by then. */
const KEPT_MS = 24 * 3_600_000;

/** What is remembered of what an agent has done; each number counts half after each half-life. */
export const outcomes = z.object({
  /** When the numbers were true, in milliseconds since 1970. */
  at: z.number(),
  good: z.number(),
  bad: z.number(),
  /** Of all of them, in US dollars. */
  costUsd: z.number(),
});
export type Outcomes = z.infer<typeof outcomes>;

/** How something that an agent was asked to do has come out; what was cancelled is no outcome. */
export interface Result {
  readonly good: boolean;
  /** In US dollars, as the agent says. */
  readonly costUsd?: number | undefined;
}

function fadedTo(now: number, { at, good, bad, costUsd }: Outcomes, scale: number): Outcomes {
  const left = 0.5 ** ((Math.max(0, now - at) * scale) / HALF_LIFE_MS);
  return { at: Math.max(at, now), good: good * left, bad: bad * left, costUsd: costUsd * left };
}

/** What an agent's word on costs is worth. */
function believed(costUsd = 0): number {
  return costUsd > 0 ? Math.min(costUsd, MAX_COST_USD) : 0;
}

/**
 * What is remembered after one more result.
 *
 * @param scale how much faster than normal the deployment lives
 */
export function withResult(
  known: Outcomes | undefined,
  { good, costUsd }: Result,
  now: number,
  scale = 1,
): Outcomes {
  const faded = fadedTo(now, known ?? { at: now, good: 0, bad: 0, costUsd: 0 }, scale);
  return {
    at: faded.at,
    good: faded.good + (good ? 1 : 0),
    bad: faded.bad + (good ? 0 : 1),
    costUsd: faded.costUsd + believed(costUsd),
  };
}

/**
 * How good an agent has been, from 0 to 1: its success rate, divided by 1 and what a success has cost in US dollars.
 * An agent of whom nothing is known, or nothing any more, is as good as can be.
 */
export function weightOf(known: Outcomes | undefined, now: number, scale = 1): number {
  if (known === undefined) return 1;
  const { good, bad, costUsd } = fadedTo(now, known, scale);
  const total = good + bad;
  if (total < FORGOTTEN) return 1;
  return good === 0 ? 0 : good / total / (1 + costUsd / good);
}

/** What all agents have done, each under the name of the one that has done it: not of whom it was asked. */
export class OutcomeBook {
  readonly #store: ItemStore<Outcomes>;
  readonly #now: () => number;
  readonly #scale: number;
  readonly #pause: Pause | undefined;

  /** @param options.scale how much faster than normal the deployment lives */
  constructor(options: {
    store: ItemStore<Outcomes>;
    now: () => number;
    scale?: number;
    pause?: Pause;
  }) {
    this.#store = options.store;
    this.#now = options.now;
    this.#scale = options.scale ?? 1;
    this.#pause = options.pause;
  }

  /** Notes a result; see {@link change} for what it throws. */
  async note(executor: string, result: Result): Promise<void> {
    const now = this.#now();
    const expiresAt = now + KEPT_MS;
    const noted = (known: Outcomes | undefined) => ({
      answer: undefined,
      next: { value: withResult(known, result, now, this.#scale), expiresAt },
    });
    await change(this.#store, executor, noted, this.#pause);
  }

  /** The weights of agents, see {@link weightOf}. */
  async weights(agents: Iterable<string>): Promise<(agent: string) => number> {
    const known = await this.#store.readAll([...agents]);
    const now = this.#now();
    return (agent) => weightOf(known.get(agent), now, this.#scale);
  }
}
