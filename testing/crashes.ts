import type { Fate, Write } from "./process.ts";

/**
 * Where the worker dies: at a step's name, before its result is stored (its function has run then) or after; or at
 * the n-th write to the store from now on, from 1, before it takes effect or after.
 */
export type CrashPoint = { readonly before: string | number } | { readonly after: string | number };

/** The crashes that are to come; each happens once. */
export class Crashes {
  readonly #planned: { readonly when: "before" | "after"; readonly at: string | number; seen: number }[] = [];

  /** How many have happened. */
  happened = 0;

  plan(point: CrashPoint): void {
    if ("before" in point) this.#planned.push({ when: "before", at: point.before, seen: 0 });
    else this.#planned.push({ when: "after", at: point.after, seen: 0 });
  }

  /**
   * @param stored the steps that were stored, for the error
   * @throws Error when a crash at a step has not happened; one at a write may be one more than there are
   */
  mustNotMiss(stored: readonly string[]): void {
    const missed = this.#planned.find(({ at }) => typeof at === "string");
    if (missed === undefined) return;
    throw new Error(
      `crash ${missed.when} ${JSON.stringify(missed.at)}: no result of a step of that name was stored since; those of the task are ${JSON.stringify(stored)}`,
    );
  }

  /** What becomes of the worker at this write. */
  fate(write: Write): Fate {
    if (write.by !== "work" || !write.kind.startsWith("store.")) return undefined;
    const hit = this.#planned.findIndex((crash) => {
      crash.seen++;
      return typeof crash.at === "number"
        ? crash.seen === crash.at
        : write.entry?.steps?.some(({ name }) => name === crash.at);
    });
    if (hit === -1) return undefined;
    this.happened++;
    return this.#planned.splice(hit, 1)[0]?.when;
  }
}
