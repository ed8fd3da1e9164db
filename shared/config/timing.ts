/**
 * Every duration that the functions share, in milliseconds, in one place: what one function waits for is what
 * another promises.
 */
export interface Timing {
  /** How much faster than in the cloud this deployment lives; 1 except on the local host under `--time-scale`. */
  readonly scale: number;
  /** A claim whose beat did not change for this long is free to be taken over. */
  readonly leaseMs: number;
  /** How often a worker with a running step shows that it lives; a third of the lease. */
  readonly beatMs: number;
  /** How often `sweep` runs, and how far it looks ahead. */
  readonly sweepPeriodMs: number;
  /** The longest that a head goes unlooked at, however often looking did not help. */
  readonly sweepMaxMs: number;
  /** JetStream's wait for an acknowledgement before it delivers again. */
  readonly ackWaitMs: number;
  /** The first delay of a negative acknowledgement; it doubles with each delivery. */
  readonly nakBaseMs: number;
  /** The longest delay of a negative acknowledgement. */
  readonly nakMaxMs: number;
  /** How long a control may wait for the task that it speaks of. */
  readonly controlGraceMs: number;
  /** How long a sandbox goes by what it knows of whether an agent is paused. */
  readonly pauseKnownMs: number;
  /** How long before its invocation's end a function stops taking work. */
  readonly marginMs: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/**
 * The timing of a deployment.
 *
 * @param scale how much faster than normal; at least 1 (the local host's `--time-scale`)
 * @throws RangeError when the scale is no number of at least 1
 */
export function timing(scale = 1): Timing {
  if (!(scale >= 1 && Number.isFinite(scale)))
    throw new RangeError(`time scale: expected a number of at least 1, got ${scale}`);
  const of = (ms: number) => Math.ceil(ms / scale);
  return {
    scale,
    leaseMs: of(MINUTE),
    beatMs: of(20 * SECOND),
    sweepPeriodMs: of(MINUTE),
    sweepMaxMs: of(15 * MINUTE),
    ackWaitMs: of(2 * MINUTE),
    nakBaseMs: of(2 * SECOND),
    nakMaxMs: of(60 * MINUTE),
    controlGraceMs: of(5 * MINUTE),
    pauseKnownMs: of(5 * SECOND),
    marginMs: of(10 * SECOND),
  };
}

/** The timing that the environment asks for: `TIME_SCALE`, set by the local host only. */
export function timingFromEnv(env: Readonly<Record<string, string | undefined>>): Timing {
  return timing(env.TIME_SCALE === undefined ? 1 : Number(env.TIME_SCALE));
}

/** SQS takes whole seconds up to 900 (SQS API: SendMessage, DelaySeconds); rounded up, never early. */
export function delaySeconds(ms: number): number {
  return Math.min(900, Math.max(0, Math.ceil(ms / SECOND)));
}
