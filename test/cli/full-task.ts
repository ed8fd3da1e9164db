import { createHash } from "node:crypto";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { putObject } from "../../shared/nats/index.ts";
import { childMessageId } from "../../shared/tasks/delegation.ts";
import type { Child, Entry, Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import type { Values } from "../../shared/tasks/values.ts";
import { taskIdOf } from "../../shared/wire/index.ts";
import { SENDER } from "../support/sluice.ts";

/** Stands in all that a task has been given, has done and has told; and in the names of its steps. */
export const SECRET = "the secret";
const BOSS = "acme-boss";
const HELPER = "acme-helper";
const STRANGER = "eve-room";

export interface FullTask {
  readonly head: Head;
  readonly entries: readonly Entry[];
  /** The name of its artifact in the object store. */
  readonly object: string;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/**
 * Puts a task that is over into the parts, with all that a task can have: a payload in an item, results, answers,
 * errors and events in place and in the bucket, an artifact, two tasks that it has handed on, messages on the streams.
 */
export async function putFullTask(
  { store, values, nc }: { store: Store; values: Values; nc: NatsConnection },
  messageId: string,
): Promise<FullTask> {
  const taskId = taskIdOf(SENDER, BOSS, messageId);
  const now = Date.now();
  const expiresAt = Math.ceil(now / 1_000) + 86_400;
  const large = await values.keep(taskId, `${SECRET} ${messageId}`.padEnd(40_000, "."));
  const bytes = Buffer.from(`${SECRET} of an artifact ${messageId}`);
  const artifact = { id: "art_1", key: `tasks/${taskId}/report/report.txt`, mediaType: "text/plain" };
  const digest = `sha256:${sha256(String(bytes))}`;
  const value = await values.put(taskId, bytes);
  await putObject(nc, { ...artifact, digest, bytes });

  const at = (place: number, more: Partial<Entry>): Entry => ({
    place,
    nonce: `n${place}`,
    epoch: 1,
    at: now + place,
    revision: place,
    ...more,
  });
  const text = (what: string) => ({ text: `${SECRET} ${what}` });
  const child = (step: string, to: string): Child => ({
    to,
    channelRef: "helper",
    skill: "task",
    messageId: childMessageId(taskId, step),
    timeoutSec: 60,
    depth: 0,
  });
  const [asked, given, late] = [`${SECRET} ask`, `${SECRET} hand on`, `${SECRET} hand on late`];
  const stranger = `task_at_a_strangers_${messageId}`;
  const lateChild = taskIdOf(BOSS, HELPER, child(late, HELPER).messageId);
  const entries = [
    at(1, {
      steps: [{ name: `${SECRET} plan`, kind: "run", value: large, ms: 1 }],
      opens: [
        { name: asked, kind: "ask", until: now, asked: 1 },
        { name: given, kind: "delegate", until: now, child: child(given, STRANGER) },
        { name: late, kind: "delegate", until: now, child: child(late, HELPER) },
      ],
      events: [{ kind: "status", revision: 1, body: text("question") }],
    }),
    at(2, { answer: { step: asked, value: text("answer") } }),
    at(3, { heard: { step: given, revision: 1, taskId: stranger } }),
    at(4, { heard: { step: given, revision: 2, outcome: text("outcome") } }),
    at(5, {
      events: [
        {
          kind: "artifact",
          revision: 5,
          body: text("artifact"),
          artifact: { ...artifact, digest, value },
        },
      ],
    }),
    at(6, {
      steps: [
        { name: "fails", kind: "run", value: { text: "" }, ms: 1, error: { name: "Error", message: SECRET } },
      ],
      events: [{ kind: "result", revision: 6, body: large }],
      end: { state: "TASK_STATE_FAILED", code: "internal", message: SECRET },
    }),
  ];
  const head: Head = {
    taskId,
    messageId,
    from: SENDER,
    to: BOSS,
    digest: sha256(messageId),
    state: "TASK_STATE_FAILED",
    epoch: 1,
    beat: 0,
    published: 6,
    decidedAt: now,
    deadline: now + 60_000,
    expiresAt,
    skill: "task",
    input: { item: true },
    running: `${SECRET} running`,
  };
  await store.admit(head);
  await store.putInput(taskId, head.digest, SECRET.padEnd(2_000, "."), expiresAt);
  for (const entry of entries) await store.append(taskId, entry, expiresAt);
  for (const [executor, childTaskId, step] of [
    [STRANGER, stranger, given],
    [HELPER, lateChild, late],
  ] as const)
    await store.bindChild({ delegator: BOSS, executor, childTaskId }, { taskId, step }, expiresAt);
  const told = `a2a.v1.event.${BOSS}.${SENDER}.${taskId}`;
  for (const subject of [
    `a2a.v1.task.${SENDER}.${BOSS}.${messageId}`,
    `a2a.v1.control.${SENDER}.${BOSS}.${taskId}.input_reply`,
    `${told}.status`,
    `${told}.result`,
    `a2a.v1.event.${BOSS}.${SENDER}.msg_${messageId}.rejected`,
  ])
    await jetstream(nc).publish(subject, SECRET);
  return { head, entries, object: artifact.key };
}
