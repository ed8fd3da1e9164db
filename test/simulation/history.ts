import { parseDeployment } from "../../shared/config/deployment.ts";
import type { Choices } from "./choices.ts";
import { checkEnd, whatIsOpen } from "./end.ts";
import { Functions, isExpected } from "./functions.ts";
import type { Violation } from "./invariants.ts";
import { Peers } from "./peers.ts";
import type { Process } from "./process.ts";
import { agentOf, HELPER } from "./program.ts";
import { drawTrouble, NO_TROUBLE, Scheduler } from "./scheduler.ts";
import { MINUTE } from "./time.ts";
import { Watch } from "./watch.ts";
import { World } from "./world.ts";

/** Nothing of the system that is simulated depends on the real date. */
const START = Date.UTC(2030, 0, 1);
/** How many things happen at the most before everything goes well. */
const LENGTHS = [40, 80, 160, 300] as const;
/** Within this, once nothing goes wrong, everything must be over: a message may be hidden for 90 minutes, twice. */
const CALM_MS = 8 * 60 * MINUTE;
/** So many things happen in no history in which everything goes well. */
const CALM_STEPS = 20_000;

/** What a history came to. */
export interface Played {
  readonly violation: Violation | undefined;
  readonly choices: readonly number[];
  /** How many things happened. */
  readonly steps: number;
}

/**
 * Plays one history: peers ask, functions work, and things go wrong as the choices say; then nothing goes wrong any
 * more, and everything must come to its end.
 *
 * @param tell gets a line for each thing that happens
 */
export async function playHistory(choices: Choices, tell?: (line: string) => void): Promise<Played> {
  const history = new History(choices, tell);
  const random = Math.random;
  // The core draws pauses between attempts from it; nothing else may run meanwhile that needs real chance.
  Math.random = sameEachTime();
  try {
    return await history.play();
  } finally {
    Math.random = random;
  }
}

/** A multiplicative congruential generator: for jitter alone (Park and Miller's minimal standard). */
function sameEachTime(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const deployments = new Map<string, ReturnType<typeof parseDeployment>>();

/** The deployment of two agents, one of which hands on to the other; parsed once for each policy. */
function deploymentOf(policy: object): ReturnType<typeof parseDeployment> {
  const key = JSON.stringify(policy);
  const known = deployments.get(key);
  if (known !== undefined) return known;
  const agent = (id: string) => ({
    id,
    runtime: `acme-${id}`,
    channelRef: id,
    displayName: id,
    description: "A generated agent",
    version: "1.0.0",
    skills: [{ slug: "task", name: "Task", description: "", tags: [] }],
    policy: {
      acceptFromRuntimes: ["*"],
      delegateTargets: [{ runtimeAgentId: HELPER, skillId: "task" }],
      timeoutSec: { default: 300, max: 3_600 },
      ...policy,
    },
    settings: {},
  });
  const parsed = parseDeployment({ deployment: "acme", agents: [agent("worker"), agent("helper")] });
  deployments.set(key, parsed);
  return parsed;
}

/** Resolves when no code goes on by itself any more: ticks come after all microtasks (Node.js: process.nextTick). */
function quiet(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

class History {
  readonly #choices: Choices;
  readonly #scheduler: Scheduler;
  readonly #watch: Watch;
  readonly #world: World;
  readonly #peers: Peers;
  readonly #functions: Functions;
  readonly #hasty: boolean;
  #lastSweep: number;
  #tokens = 0;
  #steps = 0;

  constructor(choices: Choices, tell?: (line: string) => void) {
    this.#choices = choices;
    this.#scheduler = new Scheduler(choices, START);
    const { clock } = this.#scheduler;
    if (tell !== undefined)
      this.#scheduler.tell = (line) =>
        tell(`${((clock.now() - START) / 1_000).toFixed(3).padStart(9)} ${line()}`);
    const maxConcurrent = choices.of(0, 0, 1, 2);
    const deployment = deploymentOf({ statusEverySec: choices.of(5, 0, 60), maxConcurrent });
    const runtimes = deployment.agents.map(({ runtime }) => runtime);
    this.#watch = new Watch(this.#scheduler, () => this.#world.values, maxConcurrent);
    this.#world = new World(
      this.#scheduler,
      {
        changed: (key, before, after) => this.#watch.changed(key, before, after, this.#world.acting),
        published: (message) => {
          this.#watch.published(message);
          this.#peers.read(message);
        },
        acknowledged: (message, ack) => this.#watch.settled(message, ack),
      },
      runtimes,
    );
    this.#peers = new Peers(this.#world, this.#watch, choices);
    this.#functions = new Functions({
      world: this.#world,
      deployment,
      agents: (process) => deployment.agents.map(({ id }) => this.#agent(id, process)),
      failed: (process, error) => this.#failed(process, error),
    });
    this.#lastSweep = START;
    this.#scheduler.trouble = drawTrouble(choices);
    this.#hasty = this.#scheduler.trouble.haste > 0;
    this.#peers.draw();
  }

  async play(): Promise<Played> {
    await this.#stormy();
    if (this.#watch.violation === undefined) await this.#calm();
    if (this.#watch.violation === undefined)
      checkEnd(this.#world, this.#watch, this.#peers, this.#disturbed());
    return { violation: this.#watch.violation, choices: this.#choices.made, steps: this.#steps };
  }

  /** Where time passes though something could happen, any worker may seem dead. */
  #disturbed(): number {
    return this.#hasty ? Number.POSITIVE_INFINITY : this.#functions.disturbed;
  }

  /** Things go wrong. */
  async #stormy(): Promise<void> {
    const length = this.#choices.of(...LENGTHS);
    for (let n = 0; n < length && this.#watch.violation === undefined; n++) {
      const hasty = this.#scheduler.ready > 0 && this.#scheduler.chance("haste");
      if (this.#scheduler.ready === 0 || hasty) {
        if (!(await this.#pass())) return;
      } else await this.#step();
    }
  }

  /** Nothing goes wrong any more, and the oldest comes first. */
  async #calm(): Promise<void> {
    this.#choices.calm();
    this.#scheduler.trouble = NO_TROUBLE;
    this.#scheduler.say(() => "from now on nothing goes wrong");
    const end = this.#scheduler.clock.now() + CALM_MS;
    for (let n = 0; this.#watch.violation === undefined; n++) {
      if (n > CALM_STEPS) return this.#stuck(n);
      if (this.#scheduler.ready > 0) await this.#step();
      else if (whatIsOpen(this.#world, this.#watch, this.#peers) === undefined) return;
      else if (!(await this.#pass()) || this.#scheduler.clock.now() > end) return this.#stuck(n);
    }
  }

  #stuck(steps: number): void {
    const open = whatIsOpen(this.#world, this.#watch, this.#peers) ?? {
      invariant: "no-loss",
      text: "something goes on for ever",
    };
    const hours = (this.#scheduler.clock.now() - START) / (60 * MINUTE);
    this.#watch.broken(open.invariant, `${open.text}, after ${hours.toFixed(1)} h and ${steps} calm steps`);
  }

  async #step(): Promise<void> {
    this.#steps++;
    this.#scheduler.step();
    await quiet();
  }

  /** Time passes until something can happen. False when nothing ever will. */
  async #pass(): Promise<boolean> {
    const timer = this.#scheduler.clock.next();
    const sweep = this.#nextSweep();
    const to = Math.min(timer ?? Number.POSITIVE_INFINITY, sweep ?? Number.POSITIVE_INFINITY);
    if (to === Number.POSITIVE_INFINITY) return false;
    this.#scheduler.clock.move(to);
    if (to === sweep && this.#scheduler.clock.now() >= to) {
      this.#lastSweep = to;
      this.#functions.sweep();
      if (this.#scheduler.chance("delivery")) this.#functions.sweep();
    }
    await quiet();
    return true;
  }

  /** `sweep` runs each minute, but only where that does anything. */
  #nextSweep(): number | undefined {
    const due = this.#world.table.nextDue;
    if (due === undefined) return undefined;
    const period = this.#world.timing.sweepPeriodMs;
    const periods = Math.max(1, Math.ceil((due - period - this.#lastSweep) / period));
    return this.#lastSweep + periods * period;
  }

  #agent(id: string, process: Process) {
    return agentOf(id, (taskId) => this.#peers.programOf(taskId), {
      called: (taskId, step) => {
        process.say(() => `runs step ${step} of ${taskId}`);
        this.#watch.called(process, taskId, step);
      },
      seen: (taskId, step) => this.#watch.seen(taskId, step),
      pause: (ms) => new Promise((resolve) => void process.clock.timer(ms, resolve)),
      token: () => `t${++this.#tokens}`,
    });
  }

  #failed(process: Process, error: unknown): void {
    process.say(() => `fails: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`);
    if (isExpected(error)) return;
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#watch.broken("crash", `${process.name} fails: ${why}`);
  }
}
