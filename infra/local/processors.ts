import { cpus } from "node:os";

/** Over how long it is looked, in milliseconds. */
const WINDOW_MS = 200;
/** Of this share of the time upwards the processors count as busy. */
const BUSY = 0.9;

/** What all processors have done since the machine was started, in milliseconds. */
interface Sample {
  readonly idle: number;
  readonly all: number;
}

/** Whether this machine's processors have time for more. */
export class Processors {
  readonly #sample: () => Sample;
  readonly #now: () => number;
  #last: Sample;
  #at: number;
  #busy = 0;

  /**
   * @param sample what the processors have done; default: as the system says
   * @param now in milliseconds
   */
  constructor(sample = sampleOf, now = () => performance.now()) {
    this.#sample = sample;
    this.#now = now;
    this.#last = sample();
    this.#at = now();
  }

  get haveRoom(): boolean {
    const now = this.#now();
    if (now - this.#at >= WINDOW_MS) {
      const { idle, all } = this.#sample();
      const passed = all - this.#last.all;
      if (passed > 0) this.#busy = 1 - (idle - this.#last.idle) / passed;
      this.#last = { idle, all };
      this.#at = now;
    }
    return this.#busy < BUSY;
  }
}

function sampleOf(): Sample {
  const times = cpus().map((cpu) => cpu.times);
  const sum = (of: (time: (typeof times)[number]) => number) =>
    times.reduce((total, time) => total + of(time), 0);
  return {
    idle: sum(({ idle }) => idle),
    all: sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq),
  };
}
