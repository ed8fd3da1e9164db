import * as z from "../zod.ts";
import type { Head } from "./items.ts";

const natural = z.whenUsed(() => z.int().check(z.nonnegative()));
const positive = z.whenUsed(() => z.int().check(z.positive()));

/** Receives after which SQS gives a message to its queue's dead-letter queue; the stack declares it. */
export const MAX_RECEIVES = 5;

/**
 * A JetStream message on its way through SQS (queues `tasks` and `controls`). The acknowledgement travels with it:
 * whoever decides the message acknowledges it on `ackSubject`, so the bridge keeps no state.
 */
export const forwarded = z.whenUsed(() =>
  z.object({
    stream: z.string(),
    consumer: z.string(),
    /** Sequence in the stream, by which the body is read when it is not inline. */
    seq: positive(),
    /** Where JetStream waits for the verdict: nothing else may be published to in its name. */
    ackSubject: z.string().check(z.startsWith("$JS.ACK.")),
    subject: z.string(),
    headers: z.record(z.string(), z.string()),
    /** How often JetStream has delivered the message, this time included. */
    deliveries: positive(),
    /** When the message entered the stream, in milliseconds since 1970. */
    storedAt: z.number(),
    /** The body, when it is clean UTF-8 of at most 48 KB. */
    body: z.optional(z.string()),
    /**
     * Whether it was sent again out of the dead letters (`sluice dead redrive`). JetStream has been told to give it up,
     * and will not deliver it again: SQS's copy is then the only one.
     */
    redriven: z.optional(z.boolean()),
  }),
);
export type Forwarded = z.Used<typeof forwarded>;

/**
 * A hint on the queue `work`: somebody may claim this task, if its head still shows this epoch and beat. Losing or
 * repeating one changes nothing.
 */
export const workHint = z.whenUsed(() =>
  z.object({
    taskId: z.string(),
    epoch: natural(),
    beat: natural(),
    /** The agent's runtime, from which follow its queue and whether a claim needs a slot. Without it the head is read. */
    to: z.optional(z.string()),
    /** The task stands in its agent's line: whoever takes it up must look at its head first. */
    inLine: z.optional(z.literal(true)),
    /** The task is over, and its remote agent has to be told so: there is nothing to be claimed. */
    over: z.optional(z.literal(true)),
  }),
);
export type WorkHint = z.Used<typeof workHint>;

/** The hint at a task as its head shows it. */
export function hintOf({
  taskId,
  epoch,
  beat,
  to,
  queued,
}: Pick<Head, "taskId" | "epoch" | "beat" | "to" | "queued">): WorkHint {
  return { taskId, epoch, beat, to, ...(queued !== undefined && { inLine: true }) };
}
