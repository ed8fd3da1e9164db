import type { NatsConnection } from "@nats-io/transport-node";
import type { Timing } from "../config/timing.ts";
import { type Forwarded, forwarded } from "../tasks/messages.ts";
import { errorFields } from "../telemetry/error-fields.ts";
import type { LogFields } from "../telemetry/fields.ts";
import type { Telemetry } from "../telemetry/index.ts";
import { taskOfSubject } from "../wire/index.ts";
import { type Delivery, fetchDelivery, nakDelay, settleDelivery, type Verdict } from "./delivery.ts";

/** What the functions that take JetStream messages from SQS have in common. */
export interface IntakeDeps {
  readonly connection: () => Promise<NatsConnection>;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  /** What becomes of a message; a throw means that something could not be reached. */
  readonly decide: (message: Delivery) => Promise<Verdict>;
  /** Whether the message has been decided before: then it was another of its batch that ended the function. */
  readonly decided: (message: Forwarded) => Promise<boolean>;
}

/** One record of SQS. */
export interface IntakeRecord {
  readonly body: string;
  /** Which receive this is, from 1. */
  readonly receives: number;
  /** The receive after which the queue gives the message to its dead-letter queue. */
  readonly maxReceives: number;
  /**
   * Takes what is yet to be waited for when the message has been dealt with: that JetStream confirms what it was told. It
   * never rejects. Without it that is waited for at once.
   */
  readonly later?: (confirmation: Promise<unknown>) => void;
}

/** A redriven message cannot be decided now: its copy on SQS is the only one, and must stay there. */
export class NotNow extends Error {
  override readonly name = "NotNow";
}

/** The message has crashed its function on every receive before; it goes to the dead-letter queue. */
export class PoisonMessage extends Error {
  override readonly name = "PoisonMessage";
}

/**
 * Takes one forwarded message to its end: decided and acknowledged, terminated, or given back to JetStream with a
 * growing delay. JetStream owns the retries: whatever cannot be reached, SQS's copy is done, since an unacknowledged
 * message comes again by itself. So what SQS delivers a second time has killed its function, and on its last receive
 * it is terminated instead of tried.
 *
 * A confirmation holds nothing up: a server that was restored without what it noted last answers no acknowledgement of a
 * message that it believes not to have delivered yet, and messages that are taken one after the other would wait for it in
 * turn until their function is ended (docs/nats.md, acknowledging).
 *
 * Not so a message that was redriven: of it JetStream knows nothing any more. What cannot be decided now fails towards
 * SQS, which tries it again, and in the end gives it back to the dead letters.
 *
 * @throws PoisonMessage when the record belongs into the dead-letter queue
 * @throws NotNow, or what could not be reached, when a redriven message must stay in its queue
 */
export async function intake(deps: IntakeDeps, record: IntakeRecord): Promise<void> {
  const message = forwarded().parse(JSON.parse(record.body));
  try {
    if (record.receives >= record.maxReceives && !(await deps.decided(message)))
      return await bury(deps, message, record);
    const nc = await deps.connection();
    const verdict = await deps.decide(await fetchDelivery(nc, message));
    if ("term" in verdict) {
      deps.telemetry.warn("a message is terminated", { ...fields(message), reason: verdict.term });
      deps.telemetry.count("MessagesTerminated");
    }
    if (message.redriven && "nakMs" in verdict) throw new NotNow(`${message.subject} is too early`);
    // The decision is durable; without the confirmation the message comes again and is answered again. Should a
    // redriven message be unacknowledged still, it is not any more.
    const settled = settleDelivery(nc, message.ackSubject, verdict).then((confirmed) => {
      if (!confirmed && !message.redriven) deps.telemetry.count("AcksUnconfirmed");
    });
    await confirm(record, settled);
  } catch (error) {
    if (error instanceof PoisonMessage || message.redriven) throw error;
    await giveBack(deps, message, record, error);
  }
}

async function confirm({ later }: IntakeRecord, settled: Promise<unknown>): Promise<void> {
  if (later === undefined) await settled;
  else later(settled);
}

/** The task follows from the subject, whatever the body holds: by it `sluice logs` finds the line. */
function fields({ stream, seq, subject, deliveries, redriven }: Forwarded): LogFields {
  const taskId = taskOfSubject(subject);
  return { ...(taskId && { taskId }), stream, seq, subject, deliveries, ...(redriven && { redriven }) };
}

async function giveBack(
  { connection, telemetry, timing }: IntakeDeps,
  message: Forwarded,
  record: IntakeRecord,
  error: unknown,
): Promise<void> {
  const nakMs = nakDelay(message.deliveries, timing);
  telemetry.warn("a message is given back", { ...fields(message), nakMs, ...errorFields(error) });
  telemetry.count("MessagesGivenBack");
  try {
    await confirm(record, settleDelivery(await connection(), message.ackSubject, { nakMs }));
  } catch (unreachable) {
    telemetry.warn("NATS is out of reach; the message comes again by itself", errorFields(unreachable));
  }
}

async function bury(
  { connection, telemetry }: IntakeDeps,
  message: Forwarded,
  record: IntakeRecord,
): Promise<never> {
  const { receives } = record;
  telemetry.error("a message has ended its function on every receive", { ...fields(message), receives });
  telemetry.count("MessagesPoisonous");
  const reason = message.redriven
    ? `it was received ${receives - 1} times in vain`
    : `the function died ${receives - 1} times on it`;
  const settled = connection().then((nc) => settleDelivery(nc, message.ackSubject, { term: reason }));
  await confirm(
    record,
    settled.catch(() => false),
  );
  throw new PoisonMessage(`${message.stream} ${message.seq}: ${reason}`);
}
