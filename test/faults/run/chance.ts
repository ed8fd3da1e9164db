import { createHash } from "node:crypto";

/** Draws from one seed: the same seed gives the same draws (the generator is mulberry32). */
export class Chance {
  readonly #name: string;
  #state: number;

  /** @param name the seed, and whatever tells this source of chance from others of the same seed */
  constructor(name: string) {
    this.#name = name;
    this.#state = createHash("sha256").update(name).digest().readUInt32LE();
  }

  /** A source of its own, whose draws do not depend on how many are made here. */
  fork(name: string | number): Chance {
    return new Chance(`${this.#name}/${name}`);
  }

  /** From 0 to less than 1. */
  real(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number of a range, both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.real() * (to - from + 1));
  }

  /** True in this share of the draws. */
  happens(share: number): boolean {
    return this.real() < share;
  }

  pick<T>(of: readonly T[]): T {
    const picked = of[this.int(0, of.length - 1)];
    if (picked === undefined) throw new RangeError("nothing to pick from");
    return picked;
  }

  /** One of the keys, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const keys = Object.keys(weights) as K[]; // The keys of a record of these keys.
    let left = this.real() * keys.reduce((sum, key) => sum + weights[key], 0);
    for (const key of keys) {
      left -= weights[key];
      if (left < 0) return key;
    }
    return this.pick(keys);
  }
}
