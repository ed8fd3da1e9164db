import type { Pause } from "../tasks/pauses.ts";
import type { RuntimePolicy } from "./runtime-policy.ts";

/** What operators have said of an agent since it was deployed. */
export interface Standing {
  readonly pause?: Pause;
  readonly policy?: RuntimePolicy;
}

/** Where it stands how the agents do. */
export interface StandingStore {
  standingOf(runtime: string): Promise<Standing>;
}

/**
 * How the agents stand, as a sandbox knows it: to look is a request, which not every task must cost. So each agent is
 * looked at when a task of it comes, and then for `pauseKnownMs` no more.
 */
export class Standings {
  readonly #store: StandingStore;
  readonly #now: () => number;
  readonly #knownMs: number;
  readonly #known = new Map<string, { readonly until: number; readonly standing: Promise<Standing> }>();

  constructor(options: {
    store: StandingStore;
    now: () => number;
    timing: { readonly pauseKnownMs: number };
  }) {
    this.#store = options.store;
    this.#now = options.now;
    this.#knownMs = options.timing.pauseKnownMs;
  }

  /** How an agent stands, as it was known a few seconds ago at the earliest. */
  of(runtime: string): Promise<Standing> {
    const known = this.#known.get(runtime);
    return known !== undefined && this.#now() < known.until ? known.standing : this.look(runtime);
  }

  /** The same as it is now. */
  look(runtime: string): Promise<Standing> {
    const known = { until: this.#now() + this.#knownMs, standing: this.#store.standingOf(runtime) };
    this.#known.set(runtime, known);
    known.standing.catch(() => {
      if (this.#known.get(runtime) === known) this.#known.delete(runtime);
    });
    return known.standing;
  }
}
