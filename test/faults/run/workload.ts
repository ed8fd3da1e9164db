import { setTimeout as wait } from "node:timers/promises";
import type { Chance } from "./chance.ts";
import type { EventReader } from "./event-reader.ts";
import type { Given, PeerBook } from "./peer-book.ts";
import { drawSpecs, type Spec } from "./specs.ts";

/** Publishes tasks at an even rate, and does to each what its spec says. */
export class Workload {
  readonly #book: PeerBook;
  readonly #reader: EventReader;
  readonly #chance: Chance;
  readonly #fileOf: (messageId: string) => string;
  readonly #running = new Set<Promise<void>>();
  #repeats = 0;

  constructor(options: {
    book: PeerBook;
    reader: EventReader;
    chance: Chance;
    fileOf: (messageId: string) => string;
  }) {
    this.#book = options.book;
    this.#reader = options.reader;
    this.#chance = options.chance;
    this.#fileOf = options.fileOf;
  }

  /** Publishes for so long; resolves when everything has been published and said. */
  async play({ perSecond, forMs }: { perSecond: number; forMs: number }): Promise<void> {
    const begun = Date.now();
    const specs = drawSpecs(this.#chance, this.#fileOf);
    for (let n = 0; ; n++) {
      const at = (n * 1_000) / perSecond;
      if (at >= forMs) break;
      await wait(Math.max(0, begun + at - Date.now()));
      const spec = specs.next().value;
      if (spec === undefined) break;
      this.#begin(this.#task(spec));
    }
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Publishes some tasks once more. */
  async repeat(count: number): Promise<number> {
    const given = [...this.#book.given.values()].filter(({ published }) => published > 0);
    if (given.length === 0) return 0;
    const picked = Array.from({ length: count }, () => this.#chance.pick(given));
    await Promise.all(picked.map((of) => this.#book.giveAgain(of, `repeat-${++this.#repeats}`)));
    return count;
  }

  #begin(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async #task(spec: Spec): Promise<void> {
    const given = await this.#book.give(spec);
    const { again, cancelAfterMs, statusAfterMs } = spec;
    if (again !== undefined)
      this.#begin(wait(again.afterMs).then(() => this.#book.giveAgain(given, "again", again.otherBody)));
    if (statusAfterMs !== undefined) this.#begin(this.#control(given, "status", statusAfterMs));
    if (cancelAfterMs !== undefined) this.#begin(this.#control(given, "cancel", cancelAfterMs));
  }

  async #control(given: Given, kind: "cancel" | "status", afterMs: number): Promise<void> {
    await wait(afterMs);
    await this.#book.control(given, { kind, revision: this.#seen(given.taskId) + 1, good: true });
  }

  /** The last revision that the peer has seen; docs/wire.md §9 asks for one more. */
  #seen(taskId: string): number {
    const mine = this.#reader.events.filter(({ subject }) => subject.split(".")[5] === taskId);
    return Math.max(1, mine.length);
  }
}
