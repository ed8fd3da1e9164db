import { errorFields, type Telemetry } from "../../telemetry/index.ts";
import {
  type CallEnd,
  type Circuit,
  type CircuitRules,
  enter,
  leave,
  openUntil,
  type Pass,
} from "./circuit.ts";
import { change, type ItemStore, type Pause } from "./items.ts";

/** How long an agent's circuit is kept after it was changed last: longer than it is ever open. */
const KEPT_MS = 24 * 3_600_000;

/** Nobody may call the agent now. */
export class CircuitOpenError extends Error {
  override readonly name = "CircuitOpenError";
  /** When to come again, in milliseconds since 1970. */
  readonly retryAt: number;

  constructor(agent: string, retryAt: number) {
    super(`circuit_open: ${agent} has failed again and again; not before ${new Date(retryAt).toISOString()}`);
    this.retryAt = retryAt;
  }
}

/** The circuits of all agents that are called, shared by all who call them. */
export class Breaker {
  readonly #store: ItemStore<Circuit>;
  readonly #now: () => number;
  readonly #rules: CircuitRules;
  readonly #telemetry: Pick<Telemetry, "warn" | "count">;
  readonly #pause: Pause | undefined;

  constructor(options: {
    store: ItemStore<Circuit>;
    now: () => number;
    rules: CircuitRules;
    telemetry: Pick<Telemetry, "warn" | "count">;
    pause?: Pause;
  }) {
    this.#store = options.store;
    this.#now = options.now;
    this.#rules = options.rules;
    this.#telemetry = options.telemetry;
    this.#pause = options.pause;
  }

  /** Until when nobody may call each of the agents, in milliseconds since 1970. */
  async openUntil(agents: Iterable<string>): Promise<(agent: string) => number | undefined> {
    const known = await this.#store.readAll([...agents]);
    const now = this.#now();
    return (agent) => openUntil(known.get(agent), now);
  }

  /**
   * Calls an agent, unless its circuit is open; of those that find it open for long enough exactly one calls.
   *
   * @param endOf what an error tells of the agent: by default that it has failed
   * @throws CircuitOpenError, or what the call throws
   */
  async around<T>(
    agent: string,
    call: () => Promise<T>,
    endOf: (error: unknown) => CallEnd = () => "bad",
  ): Promise<T> {
    const pass = await this.#enter(agent);
    let end: CallEnd = "good";
    try {
      return await call();
    } catch (error) {
      end = endOf(error);
      throw error;
    } finally {
      await this.#leave(agent, pass, end);
    }
  }

  async #enter(agent: string): Promise<Pass> {
    const { pass, retryAt = this.#now() } = await this.#change(agent, (known) => {
      const now = this.#now();
      const { next, ...answer } = enter(known, now, this.#rules);
      return { answer, next };
    });
    if (pass === undefined) throw new CircuitOpenError(agent, retryAt);
    return pass;
  }

  /** What a call has brought is not lost because it could not be told how it ended. */
  async #leave(agent: string, pass: Pass, end: CallEnd): Promise<void> {
    try {
      const opens = await this.#change(agent, (known) => {
        const next = leave(known, pass, end, this.#now(), this.#rules);
        return { answer: next?.until !== undefined && end === "bad", next };
      });
      if (!opens) return;
      this.#telemetry.count("CircuitsOpened");
      this.#telemetry.warn("an agent that fails is left alone", { executor: agent });
    } catch (error) {
      this.#telemetry.warn("the end of a call could not be told", { executor: agent, ...errorFields(error) });
    }
  }

  #change<R>(
    agent: string,
    fold: (known: Circuit | undefined) => { answer: R; next: Circuit | undefined },
  ): Promise<R> {
    const kept = (known: Circuit | undefined) => {
      const { answer, next } = fold(known);
      return { answer, next: next && { value: next, expiresAt: this.#now() + KEPT_MS } };
    };
    return change(this.#store, agent, kept, this.#pause);
  }
}
