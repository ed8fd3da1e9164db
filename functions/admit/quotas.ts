import type { AgentPolicy } from "../../shared/config/policy.ts";
import type { Note, QuotaNotes } from "../../shared/policy/quota-notes.ts";
import type { Admitting } from "./quota.ts";

/** A task is noted before its head is put: for so long one without a head is counted, in milliseconds. */
export const UNPUT_MS = 5 * 60_000;
/** For how long a quota that was found full is not looked at again, in milliseconds. */
const FULL_MS = 1_000;

/**
 * Which agents have as many open tasks as they may. The end of a task takes nothing out of the notes, so that it costs
 * nothing: what is over is found and forgotten when there seems to be no room.
 */
export class Quotas {
  readonly #notes: QuotaNotes;
  readonly #now: () => number;
  /** The quotas that were full, by agent and peer, and until when that is taken for granted. */
  readonly #full = new Map<string, number>();

  constructor(options: { notes: QuotaNotes; now: () => number }) {
    this.#notes = options.notes;
    this.#now = options.now;
  }

  /**
   * Notes a task as open, unless there are enough.
   *
   * @returns why the task is to be rejected, or nothing
   */
  async refuses({ open, openPerPeer }: AgentPolicy["quotas"], task: Admitting): Promise<string | undefined> {
    if (openPerPeer > 0 && (await this.#isFull(task, openPerPeer, task.from)))
      return `overloaded: ${task.from} has ${openPerPeer} open tasks here already (quotas.openPerPeer)`;
    if (open > 0 && (await this.#isFull(task, open)))
      return `overloaded: ${task.to} has ${open} open tasks already (quotas.open)`;
    const { to, from, taskId, expiresAt } = task;
    await this.#notes.put(to, { from, taskId, at: this.#now(), expiresAt });
    return undefined;
  }

  async #isFull({ to, taskId }: Admitting, max: number, from?: string): Promise<boolean> {
    const key = `${to} ${from ?? ""}`;
    if (this.#now() < (this.#full.get(key) ?? 0)) return true;
    for (;;) {
      // The message may have come before.
      const found = await this.#notes.some(to, max + 1, from);
      const others = found.filter((note) => note.taskId !== taskId);
      if (others.length < max) break;
      if (await this.#forgetEnded(to, others)) continue;
      this.#full.set(key, this.#now() + FULL_MS);
      return true;
    }
    this.#full.delete(key);
    return false;
  }

  /** @returns whether any was forgotten */
  async #forgetEnded(to: string, notes: readonly Note[]): Promise<boolean> {
    const open = await this.#notes.openOf(notes.map(({ taskId }) => taskId));
    const isOver = ({ taskId, at }: Note): boolean => {
      const isOpen = open.get(taskId);
      return isOpen === undefined ? at + UNPUT_MS <= this.#now() : !isOpen;
    };
    const over = notes.filter(isOver);
    await Promise.all(over.map((note) => this.#notes.forget(to, note)));
    return over.length > 0;
  }
}
