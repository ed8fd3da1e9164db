import * as z from "../zod.ts";
import { agentId, MAX_TASK_MESSAGE_ID, messageId, rejectionKey, taskId } from "./ids.ts";
import { memberSize, readJson } from "./json.ts";
import { failed, optional, type Reading, readWith } from "./reading.ts";
import { MAX_PAYLOAD_BYTES } from "./sizes.ts";
import { parseSubject, type Subject } from "./subjects.ts";
import { NS_PER_MS, parseTime } from "./time.ts";

/** The version of the wire that is spoken here. */
export const VERSION = "v1";
/** The binding that envelopes and cards name. */
export const BINDING = "urn:kiro-discord-bot:a2a:nats:v1";

const MAX_AHEAD_MS = 5 * 60_000;
const EXPIRY_GRACE_MS = 60_000;

const time = z.whenUsed(() =>
  z
    .string()
    .check(
      z.refine(
        (text) => parseTime(text) !== null,
        "expected an RFC 3339 time with at most nine fraction digits",
      ),
    ),
);

const envelope = z.whenUsed(() =>
  z.object({
    version: z.literal(VERSION),
    binding: z.literal(BINDING),
    messageId: messageId(),
    from: agentId(),
    to: optional(agentId()),
    type: z.enum(["task", "control", "event", "card", "heartbeat"]),
    taskId: optional(taskId()),
    revision: optional(z.int().check(z.nonnegative())),
    payload: z._default(z.unknown(), null),
    createdAt: optional(time()),
    expiresAt: optional(time()),
  }),
);

/** The envelope that every message on the streams comes in (docs/wire.md §5). */
export type Envelope = z.infer<ReturnType<typeof envelope>>;

/** An envelope and the parsed subject that it agrees with. */
export interface Enveloped {
  readonly envelope: Envelope;
  readonly subject: Subject;
}

/**
 * Reads a message off a stream, with every rule of docs/wire.md §5. What fails cannot be answered: it is terminated.
 *
 * @param now milliseconds since 1970, against which `createdAt` and `expiresAt` are judged
 */
export function readEnvelope(subject: string, body: Uint8Array, now: number): Reading<Enveloped> {
  const read = readTimelessEnvelope(subject, body);
  if (!read.ok) return read;
  const problem = timeProblem(read.value.envelope, BigInt(Math.floor(now)) * NS_PER_MS);
  return problem === null ? read : failed(problem);
}

/** As {@link readEnvelope}, but a message of any age will do: for readers of a stream's history. */
export function readTimelessEnvelope(subject: string, body: Uint8Array): Reading<Enveloped> {
  const parsedSubject = parseSubject(subject);
  if (parsedSubject === null) return failed("subject: expected one of docs/wire.md §1");
  const json = readJson(body);
  if (!json.ok) return json;
  const read = readWith(envelope(), json.value.value, "envelope");
  if (!read.ok) return read;

  // A payload is shorter than its body, so only a body that is longer than allowed needs a closer look.
  if (body.byteLength > MAX_PAYLOAD_BYTES && memberSize(json.value.text, "payload") > MAX_PAYLOAD_BYTES)
    return failed(`envelope.payload: expected at most ${MAX_PAYLOAD_BYTES} bytes`);
  const problem = mismatch(read.value, parsedSubject);
  return problem === null
    ? { ok: true, value: { envelope: read.value, subject: parsedSubject } }
    : failed(problem);
}

function timeProblem(of: Envelope, now: bigint): string | null {
  const createdAt = of.createdAt === undefined ? null : parseTime(of.createdAt);
  const expiresAt = of.expiresAt === undefined ? null : parseTime(of.expiresAt);
  if (createdAt !== null && createdAt > now + BigInt(MAX_AHEAD_MS) * NS_PER_MS)
    return "envelope.createdAt: expected a time at most 5 min ahead";
  if (expiresAt !== null && createdAt !== null && expiresAt <= createdAt)
    return "envelope.expiresAt: expected a time after createdAt";
  if (expiresAt !== null && expiresAt < now - BigInt(EXPIRY_GRACE_MS) * NS_PER_MS)
    return "envelope.expiresAt: expected a time at most 1 min past";
  return null;
}

/** Why an envelope does not belong to its subject. The subject is what NATS permissions vouch for. */
function mismatch(of: Envelope, subject: Subject): string | null {
  const differs = (field: string) => `envelope.${field}: expected what the subject says`;
  if (of.type !== subject.kind) return differs("type");
  if (of.from !== subject.from) return differs("from");
  if ("to" in subject && of.to !== subject.to) return differs("to");
  switch (subject.kind) {
    case "task":
      if (of.messageId !== subject.messageId) return differs("messageId");
      if (of.messageId.length > MAX_TASK_MESSAGE_ID)
        return `envelope.messageId: expected at most ${MAX_TASK_MESSAGE_ID} characters, or no rejection could name it`;
      return null;
    case "control":
      return of.taskId === subject.taskId ? null : differs("taskId");
    case "event":
      if (subject.taskKey.startsWith(rejectionKey("")))
        return rejectionKey(of.messageId) === subject.taskKey ? null : differs("messageId");
      return of.taskId === subject.taskKey ? null : differs("taskId");
    default:
      return null;
  }
}
