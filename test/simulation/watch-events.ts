import { isTerminal, type TaskState } from "../../shared/wire/index.ts";
import type { Break } from "./watch-journal.ts";

/** What is looked at of an event. */
export interface Shown {
  readonly kind: string;
  readonly revision: number;
  readonly state: TaskState;
  readonly content: string;
  readonly error?: { readonly Code: string; readonly Message: string } | undefined;
}

/** Watches what a requester can see of one task: the stream's messages on its subjects. */
export class EventsWatch {
  readonly #taskId: string;
  readonly #break: Break;
  /** By revision, each once. */
  readonly shown: { readonly event: Shown; readonly body: string }[] = [];

  constructor(taskId: string, broken: Break) {
    this.#taskId = taskId;
    this.#break = broken;
  }

  get revision(): number {
    return this.shown.length;
  }

  get last(): Shown | undefined {
    return this.shown.at(-1)?.event;
  }

  get ended(): boolean {
    return this.last !== undefined && isTerminal(this.last.state);
  }

  /**
   * The stream has taken an event.
   *
   * @param stored the bytes that are stored for it; nothing when none are
   */
  taken(event: Shown, body: string, stored: string | undefined): void {
    const { revision, kind } = event;
    const of = `event ${revision} (${kind}) of ${this.#taskId}`;
    if (stored === undefined)
      this.#break("committed-first", `${of} is published, and nothing stored holds it`);
    else if (stored !== body)
      this.#break(revision === 1 ? "same-answer" : "revisions", `${of} has other bytes than those stored`);
    const known = this.shown[revision - 1];
    if (known !== undefined) {
      if (known.body !== body)
        this.#break(revision === 1 ? "same-answer" : "revisions", `${of} is repeated with other bytes`);
      return;
    }
    if (revision !== this.revision + 1)
      this.#break("revisions", `${of} follows revision ${this.revision}: a gap on the stream`);
    if (this.ended) this.#break("one-end", `${of} follows the end`);
    this.shown.push({ event, body });
  }
}
