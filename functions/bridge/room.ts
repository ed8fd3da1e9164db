import { setTimeout as sleep } from "node:timers/promises";

/** The shortest and the longest pause before the queue is measured again, in milliseconds. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;

export interface RoomOptions {
  /** How many messages may be in the queue and on the way to it, as far as this run knows. */
  readonly limit: number;
  /** How many messages the queue holds. */
  readonly measure: () => Promise<number>;
  /** Told when a measurement fails; another follows. */
  readonly onError: (error: unknown) => void;
}

interface Waiter {
  readonly wanted: number;
  readonly resolve: (granted: number) => void;
}

/**
 * How much a queue may still be given. What was sent since the last measurement and what is on its way count as if the
 * queue held them, so the limit holds between measurements too. Whoever wants room gets it in order of asking.
 *
 * The queue is measured only when what was sent since makes a difference: not at all while nothing comes.
 */
export class Room {
  readonly #options: RoomOptions;
  readonly #waiters: Waiter[] = [];
  /** Unknown until it is measured: nothing is granted before. */
  #depth = Number.POSITIVE_INFINITY;
  #sent = 0;
  #held = 0;
  #pauseMs = 0;
  #measuring = false;
  #closed = false;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /**
   * Waits for room for at least one message.
   *
   * @returns for how many, at most `wanted`; 0 when the room is closed
   */
  take(wanted: number): Promise<number> {
    return new Promise((resolve) => {
      this.#waiters.push({ wanted, resolve });
      this.#grant();
    });
  }

  /** Gives back room that was taken and is not used. */
  release(count: number): void {
    this.#held -= count;
    this.#grant();
  }

  /** A message for which room was taken is in the queue. */
  sent(): void {
    this.#held--;
    this.#sent++;
  }

  /** Nothing is granted any more; whoever waits gets 0. */
  close(): void {
    this.#closed = true;
    this.#grant();
  }

  #free(): number {
    return this.#options.limit - this.#depth - this.#sent - this.#held;
  }

  #grant(): void {
    for (let waiter = this.#waiters[0]; waiter !== undefined; waiter = this.#waiters[0]) {
      const granted = this.#closed ? 0 : Math.min(waiter.wanted, this.#free());
      if (granted < 1 && !this.#closed) break;
      this.#waiters.shift();
      this.#held += granted;
      waiter.resolve(granted);
    }
    if (this.#closed) return;
    if (this.#waiters.length > 0 || this.#sent > this.#options.limit / 2) void this.#measure();
  }

  async #measure(): Promise<void> {
    if (this.#measuring) return;
    this.#measuring = true;
    try {
      if (this.#pauseMs > 0) await sleep(this.#pauseMs);
      // What is sent while SQS answers may be in the answer or not: it stays counted.
      const before = this.#sent;
      this.#depth = await this.#options.measure();
      this.#sent -= before;
      this.#pauseMs = this.#free() > 0 ? MIN_PAUSE_MS : this.#longer();
    } catch (error) {
      this.#pauseMs = this.#longer();
      if (!this.#closed) this.#options.onError(error);
    } finally {
      this.#measuring = false;
    }
    this.#grant();
  }

  #longer(): number {
    return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, this.#pauseMs * 2));
  }
}
