import type { Clock } from "../tasks/clock.ts";
import { pauseBy } from "../tasks/insist.ts";
import type { StoredEvent } from "../tasks/items.ts";
import { errorFields, type Telemetry } from "../telemetry/index.ts";
import type { Journal } from "./journal.ts";
import type { Addressed, Publisher } from "./publisher.ts";

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/**
 * Publishes a journal's events while its worker goes on: the lowest first, one at a time. What it cannot publish in
 * time stays in the journal, where `sweep` finds it.
 */
export class Outlet {
  readonly #journal: Journal;
  readonly #publisher: Publisher;
  readonly #task: Addressed;
  readonly #telemetry: Telemetry;
  readonly #until: () => number;
  readonly #clock: Clock;
  /** Whether the stream may hold events that we do not know to be published: then it is asked first. */
  #unsure: boolean;
  readonly #late: (ms: number) => void;
  #running: Promise<void> | undefined;

  /**
   * @param options.resumed whether somebody else may have published some of the events
   * @param options.until until when to go on trying, in milliseconds since 1970
   * @param options.late told how long the lowest event has waited, in milliseconds, each time that it cannot be sent
   */
  constructor(options: {
    journal: Journal;
    publisher: Publisher;
    task: Addressed;
    telemetry: Telemetry;
    resumed: boolean;
    until: () => number;
    clock: Clock;
    late?: (ms: number) => void;
  }) {
    this.#journal = options.journal;
    this.#publisher = options.publisher;
    this.#task = options.task;
    this.#telemetry = options.telemetry;
    this.#unsure = options.resumed;
    this.#until = options.until;
    this.#clock = options.clock;
    this.#late = options.late ?? (() => {});
  }

  /** Starts publishing what there is, unless that is under way. */
  kick(): void {
    this.#running ??= this.#run();
  }

  /** Publishes what there is. True when nothing is left. */
  async drain(): Promise<boolean> {
    this.kick();
    await this.#running;
    return this.#journal.unpublished.length === 0;
  }

  async #run(): Promise<void> {
    // Not in the turn of the caller, who has yet to note that this runs.
    await Promise.resolve();
    let delay = FIRST_RETRY_MS;
    let lowest = { revision: 0, since: 0 };
    for (;;) {
      const [event] = this.#journal.unpublished;
      if (event === undefined) break;
      if (event.revision !== lowest.revision) lowest = { revision: event.revision, since: this.#clock.now() };
      try {
        if (this.#unsure) this.#journal.markPublished(await this.#publisher.lastRevision(this.#task));
        else await this.#publish(event);
        this.#unsure = false;
        delay = FIRST_RETRY_MS;
      } catch (error) {
        // It may have landed unanswered, and by the time that we reach the stream again have left its duplicate window.
        this.#unsure = true;
        this.#telemetry.warn("an event is not published yet", {
          taskId: this.#task.taskId,
          revision: event.revision,
          ...errorFields(error),
        });
        this.#late(Math.max(0, this.#clock.now() - lowest.since));
        if (this.#clock.now() + delay > this.#until()) break;
        await pauseBy(this.#clock.timer, delay);
        delay = Math.min(delay * 2, MAX_RETRY_MS);
      }
    }
    // In the same turn as the last look at the journal: whoever kicks now starts anew.
    this.#running = undefined;
  }

  async #publish(event: StoredEvent): Promise<void> {
    await this.#publisher.publish(this.#task, event);
    this.#journal.markPublished(event.revision);
  }
}
