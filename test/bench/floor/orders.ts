import * as z from "zod";

/** An event as it was published. */
const published = z.object({ subject: z.string(), msgId: z.string(), body: z.string() });

/** What the product has asked of its parts for one task of one step: each request as it went over the wire. */
export const script = z.object({
  taskId: z.string(),
  messageId: z.string(),
  ackSubject: z.string(),
  /** The message of the queue `tasks`, and that of `work`. */
  forwarded: z.string(),
  hint: z.string(),
  /** Puts of the head, the step's entry and the end's; updates that claim and settle. */
  head: z.string(),
  claim: z.string(),
  step: z.string(),
  end: z.string(),
  settle: z.string(),
  accepted: published,
  result: published,
});
export type Script = z.infer<typeof script>;

const ways = z.enum(["sdk", "bare"]);
/** How calls are made: through the AWS SDK, or as bare requests. */
export type Way = z.infer<typeof ways>;

const roles = z.enum(["bridge", "admit", "work", "measure"]);
/** Whose calls a process makes. */
export type Role = z.infer<typeof roles>;

/** What a process is to do, told at its start. */
export const assignment = z.object({
  role: roles,
  way: ways,
  dynamodb: z.string(),
  sqs: z.string(),
  nats: z.string(),
  tasksQueueUrl: z.string(),
  workQueueUrl: z.string(),
  /** Of the queue that only measuring uses. */
  measureQueueUrl: z.string(),
  /** The durable by which its messages are pulled. */
  consumer: z.string(),
  script,
});
export type Assignment = z.infer<typeof assignment>;

const parts = z.enum(["put", "update", "queue", "queueTen", "publish", "ack"]);
/** What of a part's capacity is measured. */
export type PartCall = z.infer<typeof parts>;

/** What is told later: to make calls in another way, to take messages, or to make many calls and tell how long it took. */
export const order = z.union([
  z.object({ way: ways }),
  z.object({ take: z.array(z.string()) }),
  z.object({ measure: parts, count: z.int(), lanes: z.int(), mark: z.string() }),
]);
export type Order = z.infer<typeof order>;

/** What a process says: that it is ready for more, or how long calls took. */
export const report = z.union([z.object({ ready: z.literal(true) }), z.object({ ms: z.number() })]);
