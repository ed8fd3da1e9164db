import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { CallEnd } from "../../../shared/policy/choosing/circuit.ts";
import { breakerOf, Call, MINUTE, processes, START } from "./support/calls.ts";

/** What a circuit is meant to do, in words of its own: calls are let through, and told how they came out. */
class Model {
  now = START;
  state: "closed" | "open" | "probing" = "closed";
  failures = 0;
  until = 0;
  /** Calls that are out, and whether their end still counts. */
  calls: { counts: boolean }[] = [];
  readonly #seen: Map<string, number>;

  /** @param seen counts what it becomes */
  constructor(seen: Map<string, number>) {
    this.#seen = seen;
  }

  /** Whether a call is let through now. */
  enter(): boolean {
    if (this.state !== "closed" && this.now < this.until) return false;
    if (this.state !== "closed") {
      this.#become("probing");
      this.until = this.now + MINUTE;
    }
    this.calls.push({ counts: true });
    return true;
  }

  finish(at: number, end: CallEnd): void {
    const [call] = this.calls.splice(at, 1);
    if (call?.counts !== true) return;
    if (this.state === "probing") {
      this.#become(end === "good" ? "closed" : "open");
      this.until = end === "bad" ? this.now + MINUTE : this.now;
    } else if (end === "good") this.failures = 0;
    else if (end === "bad" && ++this.failures === 5) {
      this.#become("open");
      this.until = this.now + MINUTE;
    }
  }

  /** What calls of before tell counts no more. */
  #become(state: Model["state"]): void {
    this.state = state;
    this.#seen.set(state, (this.#seen.get(state) ?? 0) + 1);
    this.failures = 0;
    for (const call of this.calls) call.counts = false;
  }
}

interface Real extends ReturnType<typeof processes> {
  /** Those that were let through and are out, as the model has them. */
  readonly out: Call[];
}
type Command = fc.AsyncCommand<Model, Real>;

class Start implements Command {
  readonly by: number;
  constructor(by: number) {
    this.by = by;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    const call = new Call(breakerOf(real, this.by));
    await call.started;
    assert.equal(call.passed, model.enter());
    if (call.passed) real.out.push(call);
  }
  toString = () => `start(${this.by})`;
}

/** Both processes at the same time: when it is a probe's turn exactly one goes. */
class StartBoth implements Command {
  check = () => true;
  async run(model: Model, real: Real) {
    const calls = [0, 1].map((by) => new Call(breakerOf(real, by)));
    await Promise.all(calls.map(({ started }) => started));
    const passed = calls.filter((call) => call.passed);
    assert.equal(passed.length, [model.enter(), model.enter()].filter(Boolean).length);
    real.out.push(...passed);
  }
  toString = () => "startBoth";
}

const NEWEST = 1_000;

class Finish implements Command {
  readonly which: number;
  readonly end: CallEnd;
  constructor(which: number, end: CallEnd) {
    this.which = which;
    this.end = end;
  }
  check = (model: Readonly<Model>) => model.calls.length > 0;
  async run(model: Model, real: Real) {
    const at = Math.min(this.which, model.calls.length - 1);
    const [call] = real.out.splice(at, 1);
    model.finish(at, this.end);
    await call?.finish(this.end);
  }
  toString = () => `finish(${this.which}, ${this.end})`;
}

/** Calls that fail one after the other. */
class Fail implements Command {
  readonly times: number;
  constructor(times: number) {
    this.times = times;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    for (let i = 0; i < this.times; i++) {
      await new Start(i % 2).run(model, real);
      if (model.calls.length > 0) await new Finish(NEWEST, "bad").run(model, real);
    }
  }
  toString = () => `fail(${this.times})`;
}

class Tick implements Command {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: Model, real: Real) {
    model.now += this.ms;
    real.clock.now += this.ms;
    const until = (await breakerOf(real, 0).openUntil(["ann"]))("ann");
    assert.equal(until, model.state !== "closed" && model.now < model.until ? model.until : undefined);
  }
  toString = () => `tick(${this.ms})`;
}

test("two processes that call as they like find the circuit as the model has it", async () => {
  const end = fc.constantFrom<CallEnd>("good", "bad", "none");
  const commands = fc.commands(
    [
      fc.nat(1).map((by) => new Start(by)),
      fc.constant(new StartBoth()),
      fc.tuple(fc.oneof(fc.nat(9), fc.constant(NEWEST)), end).map(([which, of]) => new Finish(which, of)),
      fc.constant(new Finish(NEWEST, "good")),
      fc.integer({ min: 1, max: 6 }).map((times) => new Fail(times)),
      fc.constantFrom(1, MINUTE - 1, MINUTE, MINUTE).map((ms) => new Tick(ms)),
    ],
    { maxCommands: 60, size: "max" },
  );
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(commands, async (of) => {
      const real = { ...processes(2), out: [] };
      const model = new Model(seen);
      try {
        await fc.asyncModelRun(() => ({ model, real }), of);
      } finally {
        await Promise.all(real.out.map((call: Call) => call.finish("none")));
      }
    }),
    { numRuns: 200 },
  );
  for (const state of ["open", "probing", "closed"]) assert.ok((seen.get(state) ?? 0) > 0, state);
});
