import type { TaskEvent } from "../../shared/wire/index.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Break } from "./watch-journal.ts";

/** An event on the stream. */
export interface Shown {
  readonly revision: number;
  readonly body: string;
  readonly event: TaskEvent;
}

/** Watches what a requester can see of one task: the stream's messages on its subjects. */
export class EventsWatch {
  readonly #taskId: string;
  readonly #break: Break;
  /** By revision, each once. */
  readonly shown: Shown[] = [];

  constructor(taskId: string, broken: Break) {
    this.#taskId = taskId;
    this.#break = broken;
  }

  get revision(): number {
    return this.shown.length;
  }

  get last(): TaskEvent | undefined {
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
  taken(event: TaskEvent, body: string, stored: string | undefined): void {
    const { revision, kind } = event;
    const of = `event ${revision} (${kind}) of ${this.#taskId}`;
    if (stored === undefined) this.#break("committed-first", `${of} is published, and nothing stored holds it`);
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
    this.shown.push({ revision, body, event });
  }
}
