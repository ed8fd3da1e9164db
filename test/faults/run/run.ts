import { rmSync } from "node:fs";
import { Adversary } from "./adversary.ts";
import { Chance } from "./chance.ts";
import { check } from "./checks/index.ts";
import { collect } from "./collect.ts";
import { EventReader } from "./event-reader.ts";
import type { Ledger } from "./ledger.ts";
import { PeerBook } from "./peer-book.ts";
import { Persons } from "./persons.ts";
import { type Action, drawPlan } from "./plan.ts";
import type { Outcome } from "./report.ts";
import { DEPLOYMENT, LIMITS, type Scene, setScene } from "./scene.ts";
import { type Left, Rest, settle } from "./settle.ts";
import { Workload } from "./workload.ts";

const PROGRESS_MS = 10_000;

export interface FaultRunOptions {
  readonly seed: number;
  /** How long tasks are published and faults are made, in milliseconds. */
  readonly lengthMs: number;
  /** How long everything may take to come to rest afterwards, in milliseconds. */
  readonly settleMs: number;
  /** Tasks a second. */
  readonly rate: number;
  readonly timeScale: number;
  /** Instead of the one that the seed gives. */
  readonly plan?: readonly Action[];
  readonly say: (line: string) => void;
}

/** One fault run: the real stack, a peer with its ledger, an adversary; then peace, and the ledger's check. */
export async function faultRun(options: FaultRunOptions): Promise<Outcome> {
  const { seed, lengthMs, rate, timeScale } = options;
  const chance = new Chance(`seed ${seed}`);
  const plan = options.plan ?? drawPlan(chance.fork("plan"), lengthMs);
  await using scene = await setScene(seed, timeScale, chance);
  const { toll } = scene;
  const begun = Date.now();
  const play = new Play(scene, chance);
  const troubled = await play.storm(plan, options);
  const { left, stuck } = await play.calm(options);
  const ledger = await play.close(stuck, timeScale);
  const { violations, late } = check(ledger);
  await scene.host.stop();
  const clean = violations.length === 0;
  if (clean) rmSync(scene.folder, { recursive: true, force: true });
  return {
    seed,
    lengthMs,
    rate,
    timeScale,
    plan,
    tookMs: Date.now() - begun,
    toll: Object.fromEntries(toll.counts),
    kills: toll.kills,
    troubled,
    told: toll.told,
    left,
    late,
    violations,
    ledger,
    folder: clean ? undefined : scene.folder,
  };
}

/** The peer and its persons on a scene. */
class Play {
  readonly #scene: Scene;
  readonly #chance: Chance;
  readonly #book: PeerBook;
  readonly #reader: EventReader;

  constructor(scene: Scene, chance: Chance) {
    this.#scene = scene;
    this.#chance = chance;
    this.#book = new PeerBook(scene.peer, DEPLOYMENT);
    const persons = new Persons(this.#book, chance.fork("persons"));
    this.#reader = new EventReader(scene.peer.nc, (event) => void persons.take(event).catch(() => {}));
    this.#reader.start();
  }

  /** Tasks are published while the adversary plays its plan; gives what went wrong in the adversary itself. */
  async storm(
    plan: readonly Action[],
    { rate, lengthMs, say }: Pick<FaultRunOptions, "rate" | "lengthMs" | "say">,
  ): Promise<readonly string[]> {
    const { peer, fileOf } = this.#scene;
    const workload = new Workload({
      book: this.#book,
      reader: this.#reader,
      chance: this.#chance.fork("tasks"),
      fileOf,
    });
    const adversary = new Adversary({
      ...this.#scene,
      chance: this.#chance.fork("adversary"),
      repeat: (count) => workload.repeat(count),
      giveBack: (ackSubject) => {
        if (!peer.nc.isClosed()) peer.nc.publish(ackSubject, "-NAK");
      },
    });
    const begun = Date.now();
    const progress = setInterval(() => say(this.#told(begun)), PROGRESS_MS);
    await Promise.all([adversary.play(plan), workload.play({ perSecond: rate, forMs: lengthMs })]).finally(
      () => clearInterval(progress),
    );
    say(this.#told(begun));
    return adversary.failures;
  }

  #told(begun: number): string {
    const ended = this.#reader.events.filter(({ subject }) => /\.(result|rejected)$/.test(subject)).length;
    const seconds = Math.round((Date.now() - begun) / 1_000);
    return `${seconds} s: ${this.#book.given.size} tasks published, ${ended} ended, ${this.#scene.toll.kills} kills`;
  }

  /** Everything comes to rest, or not; gives what is left, and what needed a new host to come to rest. */
  async calm({ settleMs, say }: Pick<FaultRunOptions, "settleMs" | "say">): Promise<{
    left: Left;
    stuck: readonly string[];
  }> {
    const { peer, host } = this.#scene;
    const rest = new Rest(peer.nc, [...this.#book.given.values()]);
    const come = async (queuesOf: (name: string) => boolean): Promise<Left> => {
      using parts = this.#scene.parts();
      return await settle(() => rest.look(parts, queuesOf), { withinMs: settleMs, say });
    };
    say("the faults are over; waiting for everything to come to rest …");
    // Hints that killed workers had received stay hidden for longer than anybody should wait; a new host gives them
    // back (docs/local-host.md). Nothing else may need it.
    const { open: stuck } = await come((name) => name !== "work");
    say("starting a last host, under right clocks …");
    await host.stop();
    await host.start();
    const left = await come(() => true);
    await this.#reader.stop();
    return { left, stuck };
  }

  /** Closes the ledger. */
  async close(stuck: readonly string[], timeScale: number): Promise<Ledger> {
    using parts = this.#scene.parts();
    return await collect({
      ...this.#scene,
      given: [...this.#book.given.values()],
      parts,
      nc: this.#scene.peer.nc,
      timeScale,
      seen: this.#reader.events,
      stuck,
      limits: LIMITS,
    });
  }
}
