import assert from "node:assert/strict";
import * as z from "zod";
import { isTerminal, msgIdOf } from "../../shared/wire/index.ts";
import type { Peer, Received } from "./peer.ts";

/** The payloads that peers in service decode, member by member; anything else is a fault (docs/wire.md §7). */
const error = z.strictObject({ Code: z.string(), Message: z.string() });
const common = { taskId: z.string(), error, revision: z.int().positive() };
const payloads = {
  accepted: z.strictObject({ ...common, messageId: z.string(), state: z.literal("TASK_STATE_WORKING") }),
  status: z.strictObject({ ...common, state: z.string(), content: z.string().min(1).optional() }),
  result: z.strictObject({
    ...common,
    messageId: z.string(),
    state: z.enum(["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"]),
    content: z.string().min(1).optional(),
    result: z.strictObject({
      TaskID: z.string(),
      State: z.string(),
      Revision: z.int().positive(),
      Content: z.string(),
      Artifacts: z.null(),
      Error: error,
      Metrics: z.record(z.string(), z.number()),
    }),
  }),
};
const envelope = z.strictObject({
  version: z.literal("v1"),
  binding: z.literal("urn:kiro-discord-bot:a2a:nats:v1"),
  messageId: z.string(),
  from: z.string(),
  to: z.string(),
  type: z.literal("event"),
  taskId: z.string(),
  revision: z.int().positive(),
  payload: z.unknown(),
  createdAt: z.iso.datetime(),
});

/**
 * All events of a task without artifacts, each as `<revision> <kind> <state> <content or code: message>`, for a peer
 * that forgives nothing: each event has the form that it must have, each revision comes once and in order, and nothing
 * comes after the end.
 */
export async function strictly(peer: Peer, task: { taskId: string; messageId: string }): Promise<string[]> {
  const received = await peer.events(task.taskId);
  for (const [index, event] of received.entries()) check(event, task, index + 1);
  const ends = received.filter(({ event }) => isTerminal(event.state));
  assert.ok(ends.length === 0 || (ends.length === 1 && ends[0] === received.at(-1)));
  return received.map(({ event: { revision, kind, state, content, error } }) =>
    [revision, kind, state.slice("TASK_STATE_".length), error && `${error.code}: ${error.message}`, content]
      .filter((part) => part !== null && part !== "")
      .join(" "),
  );
}

function check(
  { subject, msgId, body, event }: Received,
  task: { taskId: string; messageId: string },
  revision: number,
): void {
  const { kind } = event;
  assert.ok(kind === "accepted" || kind === "status" || kind === "result", kind);
  const outer = envelope.parse(body);
  const inner = payloads[kind].parse(outer.payload);
  assert.deepEqual([outer.revision, inner.revision], [revision, revision]);
  assert.deepEqual([outer.taskId, inner.taskId], [task.taskId, task.taskId]);
  const messageId = kind === "status" ? `${task.taskId}_status` : task.messageId;
  assert.equal(outer.messageId, messageId);
  if ("messageId" in inner) assert.equal(inner.messageId, messageId);
  const { from: executor, to: delegator } = outer;
  assert.equal(subject, `a2a.v1.event.${executor}.${delegator}.${task.taskId}.${kind}`);
  const parts = { executor, delegator, taskId: task.taskId };
  assert.equal(msgId, msgIdOf(kind === "status" ? { kind, ...parts, revision } : { kind, ...parts }));
  if (kind !== "result") return;
  const { result, content = "", error: said, state } = payloads.result.parse(outer.payload);
  assert.deepEqual([result.TaskID, result.State, result.Revision], [task.taskId, state, revision]);
  assert.deepEqual([result.Content, result.Error], [content, said]);
}
