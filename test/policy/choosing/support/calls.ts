import assert from "node:assert/strict";
import { Breaker } from "../../../../shared/policy/choosing/breaker.ts";
import { type CallEnd, type Circuit, circuitRules } from "../../../../shared/policy/choosing/circuit.ts";
import { memoryItems } from "../../../../shared/testing/memory-items.ts";

export const START = 1_900_000_000_000;
export const MINUTE = 60_000;

/** Processes that share what is kept, and their clock. */
export function processes(count: number, reached?: () => Promise<unknown>) {
  const clock = { now: START };
  const said: string[] = [];
  const store = memoryItems<Circuit>(reached);
  const breakers = Array.from({ length: count }, () => {
    const telemetry = { warn: (message: string) => said.push(message), count: () => {} };
    return new Breaker({
      store,
      now: () => clock.now,
      rules: circuitRules(),
      telemetry,
      pause: async () => {},
    });
  });
  return { clock, breakers, said };
}

/** A call that ends when it is told to. */
export class Call {
  /** Whether it was let through; known once {@link started} resolves. */
  passed = false;
  readonly started: Promise<void>;
  readonly #over = Promise.withResolvers<void>();
  readonly #done: Promise<unknown>;
  #end: CallEnd = "good";

  constructor(breaker: Breaker) {
    const started = Promise.withResolvers<void>();
    this.started = started.promise;
    const call = async () => {
      this.passed = true;
      started.resolve();
      await this.#over.promise;
      if (this.#end !== "good") throw new Error("no answer");
    };
    this.#done = breaker
      .around("ann", call, () => this.#end)
      .catch(() => {})
      .finally(started.resolve);
  }

  async finish(end: CallEnd): Promise<void> {
    this.#end = end;
    this.#over.resolve();
    await this.#done;
  }
}

export function breakerOf({ breakers }: Pick<ReturnType<typeof processes>, "breakers">, at: number): Breaker {
  const breaker = breakers[at];
  assert.ok(breaker !== undefined);
  return breaker;
}

export async function fails(breaker: Breaker, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const call = new Call(breaker);
    await call.started;
    await call.finish("bad");
  }
}
