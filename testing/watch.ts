import type { Agent, Attempt, Skill, Step } from "../shared/agents/index.ts";

/**
 * What a handler is at: whether it waits for its steps alone, so that simulated time may pass, or does something of
 * its own, which takes real time.
 */
export class Watch {
  /** Handlers that have neither returned nor thrown. */
  #handlers = 0;
  /** Steps that a handler waits for. */
  #waiting = 0;
  /** The steps whose functions run. */
  readonly #running = new Set<string>();
  #changes = 0;

  /** What the handler does in real time, in words; nothing when only the clock can bring it further. */
  get busy(): string | undefined {
    const [running] = this.#running;
    if (running !== undefined) return `step ${JSON.stringify(running)} runs`;
    return this.#handlers > 0 && this.#waiting === 0
      ? "the handler waits for something that is no step"
      : undefined;
  }

  /** Grows whenever the handler gets anywhere. */
  get changes(): number {
    return this.#changes;
  }

  /** The agent, watched. */
  agent(agent: Agent): Agent {
    const skills = Object.entries(agent.skills).map(([slug, skill]): [string, Skill] => [
      slug,
      { ...skill, run: (task, step) => this.#handle(async () => skill.run(task, this.#step(step))) },
    ]);
    return { ...agent, skills: Object.fromEntries(skills) };
  }

  async #handle<T>(handler: () => Promise<T>): Promise<T> {
    this.#handlers++;
    this.#changes++;
    try {
      return await handler();
    } finally {
      this.#handlers--;
      this.#changes++;
    }
  }

  async #wait<T>(step: Promise<T>): Promise<T> {
    this.#waiting++;
    this.#changes++;
    try {
      return await step;
    } finally {
      this.#waiting--;
      this.#changes++;
    }
  }

  async #run<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    this.#running.add(name);
    this.#changes++;
    try {
      return await fn();
    } finally {
      this.#running.delete(name);
      this.#changes++;
    }
  }

  #step(step: Step, path = ""): Step {
    const wait = <T>(call: Promise<T>) => quiet(this.#wait(call));
    return {
      run: (name, fn, options) =>
        wait(step.run(name, (attempt: Attempt) => this.#run(path + name, () => fn(attempt)), options)),
      status: (text, data) => step.status(text, data),
      artifact: (name, parts, options) => wait(step.artifact(name, parts, options)),
      sleep: (name, duration) => wait(step.sleep(name, duration)),
      sleepUntil: (name, time) => wait(step.sleepUntil(name, time)),
      ask: (name, prompt, options) => wait(step.ask(name, prompt, options)),
      approve: (name, prompt, options) => wait(step.approve(name, prompt, options)),
      delegate: (name, options) => wait(step.delegate(name, options)),
      each: (items, keyOf, fn, options) =>
        step.each(
          items,
          keyOf,
          (item, branch) => fn(item, this.#step(branch, `${path}${keyOf(item)}/`)),
          options,
        ),
      branch: (name) => this.#step(step.branch(name), `${path}${name}/`),
      get signal() {
        return step.signal;
      },
      log: (message, fields) => step.log(message, fields),
      now: () => step.now(),
      random: () => step.random(),
      uuid: () => step.uuid(),
    };
  }
}

/** A step that nobody waits for may fail: that is the handler's affair, as it is without a watch. */
function quiet<T>(step: Promise<T>): Promise<T> {
  step.catch(() => {});
  return step;
}
