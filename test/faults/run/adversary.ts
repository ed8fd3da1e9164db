import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import type { Hooks, Point } from "../../support/proxy/points.ts";
import { type Battlefield, boundFiles, signal } from "./battlefield.ts";
import { type Action, describe } from "./plan.ts";
import { Servers } from "./servers.ts";
import { hooksOf } from "./weather.ts";

/** How long an adversary lies in wait for a write. */
const AMBUSH_MS = 10_000;

/** Writes by which the bridge brings messages to the queues. */
const FORWARDING: ReadonlySet<string> = new Set(["sqs send tasks", "sqs send controls", "sqs send events"]);

type Of<K extends Action["kind"]> = Extract<Action, { kind: K }>;

/** Plays a plan. What comes too late, because what it is aimed at is not there, is left out and counted. */
export class Adversary {
  readonly #field: Battlefield;
  readonly #servers: Servers;
  readonly #ends = new Set<() => void>();
  readonly #running = new Set<Promise<void>>();
  readonly #failures: string[] = [];

  constructor(field: Battlefield) {
    this.#field = field;
    this.#servers = new Servers(field);
  }

  /** What went wrong in the adversary itself. */
  get failures(): readonly string[] {
    return this.#failures;
  }

  /** Plays the plan from now on; resolves when all of it is done and undone. */
  async play(plan: readonly Action[]): Promise<void> {
    const begun = Date.now();
    for (const action of plan) {
      await wait(Math.max(0, begun + action.at - Date.now()));
      const playing = this.#act(action)
        .catch((error: unknown) => void this.#failures.push(`${describe(action)}: ${String(error)}`))
        .finally(() => this.#running.delete(playing));
      this.#running.add(playing);
    }
    for (const end of this.#ends) end();
    await Promise.all(this.#running);
    await this.#servers.restore();
  }

  async #act(action: Action): Promise<void> {
    switch (action.kind) {
      case "kill":
        return this.#kill(action);
      case "kill at write":
        return this.#ambush(action);
      case "kill server":
        return this.#servers.kill(action.name, action.downMs);
      case "freeze":
        return this.#freeze(action);
      case "weather":
        return this.#weather(action);
      case "full disk":
        return this.#fullDisk(action);
      case "repeat":
        this.#field.toll.count("task published again", await this.#field.repeat(action.count));
        return;
      case "nak storm":
        return this.#nakStorm(action);
    }
  }

  /** Waits for so long, or until the play is over. */
  async #while(ms: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    this.#ends.add(over.resolve);
    await over.promise;
    clearTimeout(timer);
    this.#ends.delete(over.resolve);
  }

  #pidOf(name: string): number | undefined {
    const { host, chance } = this.#field;
    const pids = host.functions().find((of) => of.name === name)?.pids ?? [];
    return pids.length === 0 ? undefined : chance.pick(pids);
  }

  async #kill({ name }: Of<"kill">): Promise<void> {
    const { toll } = this.#field;
    const pid = this.#pidOf(name);
    if (pid !== undefined && signal(pid, "SIGKILL")) toll.killed(name, pid);
    else toll.count("left out: nobody there");
  }

  async #ambush({ write, when }: Of<"kill at write">): Promise<void> {
    const { proxies, toll } = this.#field;
    const met = Promise.withResolvers<void>();
    const strike = ({ kind, caller }: Point): "cut" | undefined => {
      if (caller === undefined || !kind.startsWith(write)) return undefined;
      off();
      if (signal(caller.pid, "SIGKILL")) toll.killed(`${caller.name} at its write`, caller.pid);
      met.resolve();
      return "cut";
    };
    const off = proxies.points.on({ [when]: strike });
    if ((await Promise.race([this.#while(AMBUSH_MS), met.promise.then(() => true)])) !== true)
      toll.count("left out: nobody there");
    off();
  }

  async #freeze({ name, forMs }: Of<"freeze">): Promise<void> {
    const { toll } = this.#field;
    const server = name === "dynamodb" || name === "nats" || name === "host";
    const pid = server ? this.#servers.pidOf(name) : this.#pidOf(name);
    if (pid === undefined || !signal(pid, "SIGSTOP")) return toll.count("left out: nobody there");
    toll.count(`freeze ${name}`);
    const thawed = toll.begin(server ? name : pid, `${name} frozen`);
    await this.#while(forMs);
    signal(pid, "SIGCONT");
    thawed();
  }

  async #weather(of: Of<"weather">): Promise<void> {
    const { proxies, toll, chance } = this.#field;
    const { part, effect, forMs } = of;
    const over = toll.begin(part, effect);
    if (effect === "unreachable") {
      proxies.outOfReach(part, true);
      toll.count(`${part} unreachable`);
    }
    const hooks: Hooks = hooksOf(of, chance.fork(of.at), () => toll.count(`${part} ${effect}`));
    const off = proxies.points.on(hooks);
    await this.#while(forMs);
    off();
    if (effect === "unreachable") proxies.outOfReach(part, false);
    over();
  }

  async #fullDisk({ name, forMs }: Of<"full disk">): Promise<void> {
    const { toll } = this.#field;
    const pid = this.#servers.pidOf(name);
    if (pid === undefined || !boundFiles(pid, "1")) return toll.count("left out: nobody there");
    toll.count(`full disk of ${name}`);
    const over = toll.begin(name, "full disk");
    await this.#while(forMs);
    boundFiles(pid, "unlimited");
    // It stops taking messages for good, until an operator starts it again (NATS docs: "JetStream: disk full").
    if (name === "nats" && this.#servers.pidOf(name) === pid) await this.#servers.kill(name, 0);
    over();
  }

  async #nakStorm({ forMs }: Of<"nak storm">): Promise<void> {
    const { proxies, toll, giveBack } = this.#field;
    const off = proxies.points.on({
      after: ({ kind, body }) => {
        if (!FORWARDING.has(kind)) return undefined;
        for (const { MessageBody } of sent.parse(JSON.parse(body.toString())).Entries) {
          giveBack(forwarded.parse(JSON.parse(MessageBody)).ackSubject);
          toll.count("message given back");
        }
        return undefined;
      },
    });
    await this.#while(forMs);
    off();
  }
}

const sent = z.object({ Entries: z.array(z.object({ MessageBody: z.string() })) });
const forwarded = z.object({ ackSubject: z.string() });
