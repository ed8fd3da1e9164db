/**
 * What holds in every history, whatever goes wrong (docs/simulation.md explains each). The model and the fault runs use
 * the same names.
 */
export const INVARIANTS = {
  "one-end": "a task has at most one terminal event, and no event after it",
  revisions: "a task's events carry 1, 2, 3 … without a gap, and a repeated one has the same bytes",
  once: "no stored step runs again, and what a handler sees of a step is what is stored",
  fence: "nothing that a worker does after it has lost its claim has effect",
  "committed-first": "no event is published that is not stored",
  "acked-after": "no message is acknowledged before its decision is stored and said",
  "same-answer": "a repeated message gets the same bytes, and another body under its id changes nothing",
  slots: "an agent never has more live claims than it may",
  fold: "folding the events on the stream gives the same state as folding the journal",
  settled: "in the end nothing is unpublished, due, queued or taken, and a dead letter has its reason",
  "no-loss": "once nothing goes wrong any more, each task ends within a bounded time, or waits for a person",
  crash:
    "no function fails but by what its parts do to it, and no task but by its handler, its requester or time",
} as const;
export type Invariant = keyof typeof INVARIANTS;

/** An invariant that a history has broken. */
export interface Violation {
  readonly invariant: Invariant;
  readonly text: string;
}
