/** The invariants, by their names in docs/proof.md. `slots` is not of this model (docs/model.md). */
export const INVARIANTS = [
  "one-end",
  "revisions",
  "once",
  "fence",
  "committed-first",
  "acked-after",
  "same-answer",
  "fold",
  "settled",
  "no-loss",
] as const;
export type Invariant = (typeof INVARIANTS)[number];

/** States that must be reached, or that the invariants hold would say nothing; protocol.qnt tells what they are. */
export const WITNESSES = [
  "completed",
  "cancelled",
  "rejected",
  "all_done",
  "taken_over",
  "taken_over_again",
  "completed_after_takeover",
  "cancelled_at_work",
  "other_body_ignored",
  "event_twice",
  "called_too_late",
] as const;

/** The longest history in steps. The calm one ends by itself: trouble of at most 80, and then 40 rounds. */
export const STEPS = { step: 120, stepThenCalm: 125 } as const;
