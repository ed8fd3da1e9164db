import { createHash } from "node:crypto";
import * as z from "../../zod.ts";
import { skillKey } from "../delegation.ts";
import { type Change, change, type ItemStore, type Pause } from "./items.ts";

/** The longest that a skill may rest, in seconds: a day. */
export const MAX_COOLDOWN_SEC = 86_400;

/** That a skill was asked for a subject. */
export const cooling = z.object({
  /** Until when it is not asked again, in milliseconds since 1970. */
  until: z.number(),
  /** Whose request it was: the same one, repeated, is let through. */
  by: z.optional(z.string()),
});
export type Cooling = z.infer<typeof cooling>;

/**
 * Asks whether a skill may be asked for a subject now: if so it rests from now on.
 *
 * @param asked.ms for how long
 * @param asked.by whose request it is
 * @returns how long it still rests, in milliseconds; 0 when it may be asked
 */
export function cool(
  known: Cooling | undefined,
  now: number,
  { ms, by }: { readonly ms: number; readonly by?: string | undefined },
): Change<Cooling, number> {
  if (by !== undefined && known?.by === by) return { answer: 0 };
  // A clock that was set back, or a rest that was made shorter, keeps nobody out for longer than the rest is.
  const left = Math.min(Math.max(0, (known?.until ?? now) - now), ms);
  if (left > 0) return { answer: left };
  const until = now + ms;
  return { answer: 0, next: { value: { until, ...(by !== undefined && { by }) }, expiresAt: until } };
}

/** The key of a skill and what it is asked for; of one length, and tells nothing of the subject. */
function keyOf(skill: string, subject: string): string {
  return createHash("sha256")
    .update(JSON.stringify([skillKey(skill), subject]))
    .digest("hex");
}

/** How long skills rest before they are asked for the same subject again; none does unless it is said. */
export class Cooldowns {
  readonly #store: ItemStore<Cooling>;
  readonly #now: () => number;
  readonly #ms: ReadonlyMap<string, number>;
  readonly #pause: Pause | undefined;

  /**
   * @param options.seconds by skill, from 0 (none) to a day
   * @param options.scale how much faster than normal the deployment lives
   * @throws RangeError that names the skill
   */
  constructor(options: {
    store: ItemStore<Cooling>;
    now: () => number;
    seconds: Readonly<Record<string, number>>;
    scale?: number;
    pause?: Pause;
  }) {
    const { store, now, seconds, scale = 1, pause } = options;
    for (const [skill, sec] of Object.entries(seconds))
      if (!(sec >= 0 && sec <= MAX_COOLDOWN_SEC))
        throw new RangeError(
          `cooldown of ${JSON.stringify(skill)}: expected 0 to ${MAX_COOLDOWN_SEC} seconds, got ${sec}`,
        );
    this.#store = store;
    this.#now = now;
    this.#ms = new Map(
      Object.entries(seconds).map(([skill, sec]) => [skillKey(skill), (sec * 1_000) / scale]),
    );
    this.#pause = pause;
  }

  /**
   * Takes the one request for a skill and a subject that is let through until it has rested.
   *
   * @param asked.subject what it is about, such as a repository and a commit; all without one are the same
   * @param asked.by whose request it is; the same one is let through again
   * @returns until when it rests, in milliseconds since 1970; nothing when the request was let through
   */
  async take(asked: {
    readonly skill: string;
    readonly subject?: string | undefined;
    readonly by?: string | undefined;
  }): Promise<number | undefined> {
    const { skill, subject = "", by } = asked;
    const ms = this.#ms.get(skillKey(skill)) ?? 0;
    if (ms === 0) return undefined;
    const now = this.#now();
    const taken = (known: Cooling | undefined) => cool(known, now, { ms, by });
    const left = await change(this.#store, keyOf(skill, subject), taken, this.#pause);
    return left === 0 ? undefined : now + left;
  }
}
