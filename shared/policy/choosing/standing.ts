import type { PassingReason } from "./reasons.ts";

/** How an agent stands with whoever asks, at the moment of the choice. */
export interface Standing {
  /** Whether the policy of whoever asks names it for the skill. */
  readonly allowed: boolean;
  /** Until when nobody may call it, in milliseconds since 1970; absent when it may be called. */
  readonly openUntil?: number | undefined;
  /** Whether it is one of ours whose own policy refuses the task; not said while nobody has looked. */
  readonly refuses?: boolean | undefined;
  readonly healthy: boolean;
  /** Whether nothing was heard of it for too long. */
  readonly stale: boolean;
  /** How good it has been, from 0 to 1; see outcomes.ts. */
  readonly weight: number;
}

/** What keeps an agent from being asked whoever names it. */
export function forbidden({ allowed, openUntil }: Standing): ("not_allowed" | "circuit_open")[] {
  return [
    ...(allowed ? [] : (["not_allowed"] as const)),
    ...(openUntil === undefined ? [] : (["circuit_open"] as const)),
  ];
}

/** What speaks against an agent, but keeps nobody from it who names it: what is published waits for it. */
export function doubtful({ healthy, stale }: Standing): ("unhealthy" | "stale")[] {
  return [...(healthy ? [] : (["unhealthy"] as const)), ...(stale ? (["stale"] as const) : [])];
}

/** All for which an agent is passed over when others have the skill as well. */
export function unfit(standing: Standing): PassingReason[] {
  const refuses: PassingReason[] = standing.refuses === true ? ["not_accepted"] : [];
  return [...forbidden(standing), ...refuses, ...doubtful(standing)];
}
