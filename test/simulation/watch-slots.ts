import type { Head } from "../../shared/tasks/items.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Break } from "./watch-journal.ts";

/** Watches how many claims of an agent are in force at once. */
export class SlotsWatch {
  readonly #max: number;
  readonly #break: Break;
  /** By agent, the tasks whose claims are in force. */
  readonly #live = new Map<string, Set<string>>();

  /** @param max how many there may be; 0 for as many as there are */
  constructor(max: number, broken: Break) {
    this.#max = max;
    this.#break = broken;
  }

  headWritten(taskId: string, { to, epoch, waiting, state, dueAt }: Head): void {
    if (this.#max === 0) return;
    const live = this.#live.get(to) ?? new Set();
    this.#live.set(to, live);
    const held = epoch > 0 && waiting !== true && !isTerminal(state) && dueAt !== undefined;
    if (!held) live.delete(taskId);
    else if (live.add(taskId).size > this.#max)
      this.#break(
        "slots",
        `${to} has ${live.size} live claims, and may have ${this.#max}: ${[...live].join(" ")}`,
      );
  }
}
