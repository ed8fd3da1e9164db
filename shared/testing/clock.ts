/** Something that is to happen at a time. */
interface Timer {
  readonly at: number;
  readonly turn: number;
  readonly fn: () => void;
  cancelled: boolean;
}

/**
 * A clock that stands still until it is moved. Timers fire in the order of their times, and those of one time in the
 * order in which they were set.
 */
export class SimulatedClock {
  #now: number;
  #turn = 0;
  /** A binary heap: each timer comes no later than the two after it. */
  readonly #heap: Timer[] = [];

  /** @param start the first time that it shows, in milliseconds since 1970 */
  constructor(start: number) {
    this.#now = start;
  }

  /** Free of `this`, for it is handed on as a function. */
  readonly now = (): number => this.#now;

  /** Calls back after so many milliseconds; answers with how to forget it. */
  readonly timer = (ms: number, fn: () => void): (() => void) => {
    const timer = { at: this.#now + Math.max(0, ms), turn: this.#turn++, fn, cancelled: false };
    this.#push(timer);
    return () => {
      timer.cancelled = true;
    };
  };

  /** When the next timer fires, in milliseconds since 1970. */
  next(): number | undefined {
    while (this.#heap[0]?.cancelled === true) this.#pop();
    return this.#heap[0]?.at;
  }

  /** Moves on to a time, no further than to the next timer, and fires that if its time has come. */
  move(to: number): void {
    const next = this.next();
    if (next === undefined || next > to) {
      this.#now = Math.max(this.#now, to);
      return;
    }
    this.#now = Math.max(this.#now, next);
    this.#pop()?.fn();
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    for (let up = (at - 1) >> 1; at > 0 && before(timer, heap[up]); up = (at - 1) >> 1) {
      swap(heap, at, up);
      at = up;
    }
  }

  #pop(): Timer | undefined {
    const heap = this.#heap;
    const last = heap.pop();
    const first = heap[0];
    if (last === undefined || first === undefined) return last;
    heap[0] = last;
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const least = before(heap[right], heap[left]) ? right : left;
      if (!before(heap[least], heap[at])) return first;
      swap(heap, at, least);
      at = least;
    }
  }
}

function before(one: Timer | undefined, other: Timer | undefined): boolean {
  if (one === undefined) return false;
  if (other === undefined) return true;
  return one.at < other.at || (one.at === other.at && one.turn < other.turn);
}

function swap(heap: Timer[], a: number, b: number): void {
  const [one, other] = [heap[a], heap[b]];
  if (one === undefined || other === undefined) return;
  heap[a] = other;
  heap[b] = one;
}
