import { createHash } from "node:crypto";
import * as z from "../../zod.ts";
import { type Change, change, type ItemStore, type Pause } from "./items.ts";

/** How many refusals of one kind within how long an operator is told of, and for how long then of no more. */
const MAX_REFUSALS = 10;
const WITHIN_MS = 600_000;
const SILENCE_MS = 1_800_000;

/** The refusals of one kind that may still be told of, or until when they are not. */
export const refusals = z.object({
  /** When, in milliseconds since 1970. */
  at: z.array(z.number()),
  silentUntil: z.optional(z.number()),
});
export type Refusals = z.infer<typeof refusals>;

export interface EscalationRules {
  readonly refusals: number;
  /** In milliseconds. */
  readonly withinMs: number;
  /** In milliseconds. */
  readonly silenceMs: number;
}

/** The rules of a deployment that lives so much faster than normal. */
export function escalationRules(scale = 1): EscalationRules {
  return { refusals: MAX_REFUSALS, withinMs: WITHIN_MS / scale, silenceMs: SILENCE_MS / scale };
}

/** Counts one more refusal; the answer is whether an operator is to be told. While it is silent nothing is counted. */
export function escalate(
  known: Refusals | undefined,
  now: number,
  rules: EscalationRules,
): Change<Refusals, boolean> {
  const silentUntil = known?.silentUntil ?? now;
  // A clock that was set back makes no silence longer.
  if (now < silentUntil && silentUntil <= now + rules.silenceMs) return { answer: false };
  const recent = (known?.at ?? []).filter((at) => at > now - rules.withinMs && at <= now);
  const at = [...recent, now];
  if (at.length < rules.refusals)
    return { answer: false, next: { value: { at }, expiresAt: now + rules.withinMs } };
  const until = now + rules.silenceMs;
  return { answer: true, next: { value: { at: [], silentUntil: until }, expiresAt: until } };
}

/** Tells which refusals are too many. */
export class Escalation {
  readonly #store: ItemStore<Refusals>;
  readonly #now: () => number;
  readonly #rules: EscalationRules;
  readonly #pause: Pause | undefined;

  constructor(options: {
    store: ItemStore<Refusals>;
    now: () => number;
    rules: EscalationRules;
    pause?: Pause;
  }) {
    this.#store = options.store;
    this.#now = options.now;
    this.#rules = options.rules;
    this.#pause = options.pause;
  }

  /**
   * Counts a refusal.
   *
   * @param kind what makes refusals one kind; kept as a digest
   * @returns whether an operator is to be told: one of all who count does so
   */
  refused(kind: readonly string[]): Promise<boolean> {
    const key = createHash("sha256").update(JSON.stringify(kind)).digest("hex");
    return change(this.#store, key, (known) => escalate(known, this.#now(), this.#rules), this.#pause);
  }
}
