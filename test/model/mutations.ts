import type { Invariant } from "./plan.ts";

/** Something that the model can be told to do wrong. */
export interface Mutation {
  /** As the specification looks for it in `wrong`. */
  readonly name: string;
  /** The invariant that does not hold then (docs/proof.md). */
  readonly breaks: Invariant;
  readonly what: string;
  /** Whether it only shows once faults have stopped. */
  readonly calm?: true;
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: "append-overwrites",
    breaks: "committed-first",
    what: "an entry is put without the condition that its place is free",
  },
  {
    name: "nonce-forgotten",
    breaks: "once",
    what: "a retried write of one's own is taken for another's",
  },
  { name: "end-ignored", breaks: "one-end", what: "entries are put after the end" },
  { name: "takeover-unfenced", breaks: "fence", what: "a takeover puts no entry of its own" },
  { name: "loss-ignored", breaks: "fence", what: "a worker goes on although it has found a takeover" },
  { name: "claim-unconditional", breaks: "fence", what: "a claim does not compare the epoch" },
  { name: "replay-blind", breaks: "once", what: "after a takeover the handler calls what is stored" },
  {
    name: "publish-first",
    breaks: "committed-first",
    what: "an event is published before its entry is put",
  },
  {
    name: "newest-first",
    breaks: "revisions",
    what: "of the unpublished events the newest goes first",
  },
  {
    name: "publish-unconfirmed",
    breaks: "settled",
    what: "an event counts as published though nobody has confirmed it",
  },
  { name: "offer-unsaid", breaks: "revisions", what: "work is offered before `accepted` is published" },
  { name: "ack-first", breaks: "acked-after", what: "a message is acknowledged before it is decided" },
  {
    name: "repeat-unanswered",
    breaks: "acked-after",
    what: "a repeated message is acknowledged, and not answered",
  },
  {
    name: "admit-overwrites",
    breaks: "same-answer",
    what: "a decision is put without the condition that there is none",
  },
  { name: "settle-first", breaks: "settled", what: "the head is settled before all is published" },
  {
    name: "own-end-settled",
    breaks: "fold",
    what: "the head gets the worker's own end, and not the journal's",
  },
  { name: "admitted-undue", breaks: "no-loss", what: "an accepted task is not due" },
  {
    name: "claimed-unwatched",
    breaks: "no-loss",
    what: "`sweep` looks at unclaimed tasks alone",
    calm: true,
  },
];
