import { BatchProcessor, EventType, processPartialResponse } from "@aws-lambda-powertools/batch";
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { within } from "../shared/nats/deadline.ts";
import { workHint } from "../shared/tasks/messages.ts";
import type { LogFields } from "../shared/telemetry/fields.ts";
import { errorFields, type Telemetry } from "../shared/telemetry/index.ts";

/**
 * How long a record of a batch that was received before has for itself, in milliseconds. What ends its function does so at
 * once, if it does; what cannot be reached takes its time, and ten in turn would take more than a function has.
 */
const TURN_MS = 1_000;

/** Which receive of a message this is, from 1 (SQS API: ReceiveMessage, ApproximateReceiveCount). */
export function receives(record: SQSRecord): number {
  return Number(record.attributes.ApproximateReceiveCount);
}

/** A copy in random order (Fisher and Yates). */
function shuffled<T>(items: readonly T[]): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T]; // Both are within the array.
  }
  return copy;
}

type TakeRecord = (record: SQSRecord) => Promise<void>;

/** Takes each record when the one before it is done, or has had its time. */
function inTurn(take: TakeRecord): TakeRecord {
  let turn: Promise<unknown> = Promise.resolve();
  return (record) => {
    const taken = turn.then(() => take(record));
    const done = taken.catch(() => {});
    turn = turn.then(() => within(done, TURN_MS));
    return taken;
  };
}

/** The task that a hint speaks of, by which `sluice logs` finds what went wrong with it. */
function taskOf({ body }: SQSRecord): LogFields {
  try {
    const { taskId, to } = workHint().parse(JSON.parse(body));
    return { taskId, ...(to !== undefined && { to }) };
  } catch {
    return {}; // It is another queue's, or none of ours.
  }
}

/**
 * Takes the records of a batch, all at once, and reports those that failed. If one has been received before, a record
 * of its batch may have ended the function: then they are taken one after the other, in another order each time, so
 * that the harmless ones get through. One that takes its time is not waited for.
 *
 * @param take takes a record, and puts aside what is yet to be waited for when it has done so, which never rejects: that is
 *   waited for when all records are taken
 */
export async function eachRecord(
  event: SQSEvent,
  telemetry: Pick<Telemetry, "error">,
  take: (record: SQSRecord, later: (work: Promise<unknown>) => void) => Promise<void>,
): Promise<SQSBatchResponse> {
  const repeated = event.Records.some((record) => receives(record) > 1);
  const Records = repeated ? shuffled(event.Records) : event.Records;
  const aside: Promise<unknown>[] = [];
  const told = async (record: SQSRecord) => {
    try {
      await take(record, (work) => void aside.push(work));
    } catch (error) {
      // Lambda is only told that the record failed; why stands nowhere else.
      const { messageId: sqsMessageId } = record;
      telemetry.error("a record has failed", { sqsMessageId, ...taskOf(record), ...errorFields(error) });
      throw error;
    }
  };
  const response = await processPartialResponse(
    { ...event, Records },
    repeated ? inTurn(told) : told,
    new BatchProcessor(EventType.SQS),
    {
      processInParallel: true,
      throwOnFullBatchFailure: false,
    },
  );
  await Promise.all(aside);
  return response;
}
