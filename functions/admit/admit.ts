import { createHash } from "node:crypto";
import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import type { AgentPolicy } from "../../shared/config/policy.ts";
import type { Timing } from "../../shared/config/timing.ts";
import { firstEvent } from "../../shared/events/drafts.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import type { Delivery, Verdict } from "../../shared/nats/delivery.ts";
import { decide } from "../../shared/policy/admission.ts";
import type { Policies } from "../../shared/policy/runtime-policy.ts";
import type { Head } from "../../shared/tasks/items.ts";
import { hintOf, type WorkHint } from "../../shared/tasks/messages.ts";
import type { Paused } from "../../shared/tasks/pauses.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { MAX_INLINE_BYTES, type Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import {
  type Enveloped,
  isTerminal,
  readEnvelope,
  readTaskPayload,
  taskIdOf,
} from "../../shared/wire/index.ts";
import type { Backlog } from "./backlog.ts";
import type { SkillsOf } from "./card-skills.ts";
import type { Admitting, Quota } from "./quota.ts";

/** How long decisions are kept, in milliseconds; an older message could not be told from a repeated one. */
export const RETENTION_MS = 30 * 24 * 60 * 60 * 1_000;
/** A payload of up to this many bytes stays in the head, which is read and written as a whole. */
const MAX_HEAD_PAYLOAD_BYTES = 1_024;

/** What `admit` needs besides the message. */
export interface AdmitDeps {
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly deployment: DeploymentConfig;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly now: () => number;
  /** The sandbox's own. */
  readonly backlog: Backlog;
  readonly pauses: Pick<Paused, "of">;
  readonly policies: Policies;
  readonly quota: Quota;
  /** The sandbox's own; without it the skills are those of the deployment. */
  readonly skills?: SkillsOf | undefined;
  /** Puts a hint on the queue `work`. */
  readonly hint: (hint: WorkHint) => Promise<void>;
}

/**
 * Decides a task message: accepted or rejected in one conditional write, published, handed to `work`, in this order;
 * each part may be repeated (docs/tasks.md, admission).
 *
 * @returns whether the message is to be acknowledged, or terminated and why
 * @throws when the table, the bucket, the queue or NATS cannot be reached
 */
export async function admit(deps: AdmitDeps, message: Delivery): Promise<Verdict> {
  const { now, telemetry } = deps;
  if (now() - message.storedAt > RETENTION_MS) return { term: "older than decisions are kept" };
  if (message.body === null) {
    telemetry.warn("a message has left its stream before it was decided", { subject: message.subject });
    telemetry.count("MessagesGone");
    return { ack: true };
  }
  const read = readEnvelope(message.subject, message.body, now());
  if (!read.ok) return { term: read.reason };
  if (read.value.subject.kind !== "task") return { term: "expected a task subject" };
  const { from, to, messageId } = read.value.subject;
  const policy = await deps.policies.of(to);
  if (policy === undefined) return { term: `${to} is not hosted here` };

  const taskId = taskIdOf(from, to, messageId);
  const digest = createHash("sha256").update(message.body).digest("hex");
  const identity = { taskId, from, to, messageId, digest };
  const head = await headOf(deps, { identity, policy }, read.value, message);
  const outcome = await deps.store.admit(head);
  if (outcome.admitted) count(deps, head);
  await answer(deps, outcome.admitted ? head : outcome.head, digest, !outcome.admitted);
  if (outcome.admitted && head.reject === undefined)
    telemetry.measure("TimeToAccepted", Math.max(0, now() - message.storedAt), { runtime: to });
  return { ack: true };
}

type Identity = Pick<Head, "taskId" | "from" | "to" | "messageId" | "digest">;

/** The head as it is to be put: the decision, and where the payload is. */
async function headOf(
  deps: AdmitDeps,
  { identity, policy }: { readonly identity: Identity; readonly policy: AgentPolicy },
  { envelope }: Enveloped,
  { headers, storedAt }: Delivery,
): Promise<Head> {
  const now = deps.now();
  const { traceparent } = headers;
  const base = {
    ...identity,
    epoch: 0,
    beat: 0,
    published: 0,
    storedAt,
    decidedAt: now,
    deadline: now,
    expiresAt: Math.ceil((now + RETENTION_MS) / 1_000),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
  const payload = readTaskPayload(envelope.payload);
  if (!payload.ok) {
    const { clientTaskRef } = payload;
    const reject = { code: "invalid_envelope" as const, message: `invalid_envelope: ${payload.reason}` };
    return {
      ...base,
      state: "TASK_STATE_REJECTED",
      reject,
      ...(clientTaskRef === undefined ? {} : { clientTaskRef }),
    };
  }
  const { clientTaskRef } = payload.value;
  const known = { ...base, ...(clientTaskRef === undefined ? {} : { clientTaskRef }) };
  const { deployment } = deps;
  const skills = await skillsNow(deps, identity.to);
  const decision = decide({ deployment, policy, skills }, identity, payload.value);
  if (!decision.accepted)
    return {
      ...known,
      state: "TASK_STATE_REJECTED",
      reject: { code: decision.code, message: decision.message },
    };
  const deadline = now + decision.timeoutMs;
  const expiresAt = Math.ceil((deadline + RETENTION_MS) / 1_000);
  const refusal = await overloaded(deps, { ...identity, expiresAt }, policy);
  if (refusal !== undefined)
    return { ...known, state: "TASK_STATE_REJECTED", reject: { code: "overloaded", message: refusal } };

  return {
    ...known,
    state: "TASK_STATE_SUBMITTED",
    deadline,
    expiresAt,
    skill: decision.skill,
    depth: decision.depth,
    input: await keepPayload(deps, identity, JSON.stringify(envelope.payload), expiresAt),
    dueAt: now + deps.timing.leaseMs,
  };
}

/** The skills of an agent that has more than its deployment tells: one that is a remote one. */
async function skillsNow(
  { deployment, skills }: AdmitDeps,
  runtime: string,
): Promise<HostedAgent["skills"] | undefined> {
  const hosted = deployment.agents.find((of) => of.runtime === runtime);
  return hosted?.remote === undefined ? undefined : [...((await skills?.(hosted)) ?? hosted.skills)];
}

/** Why an agent takes no more tasks now; nothing when it does. */
async function overloaded(
  deps: AdmitDeps,
  task: Admitting,
  policy: AgentPolicy,
): Promise<string | undefined> {
  const { pauses, backlog, quota } = deps;
  const isRefusing = (await pauses.of(task.to))?.refuse === true;
  if (isRefusing) return `overloaded: ${task.to} is paused, and takes no tasks`;
  return (await backlog.refuses(deps, task.to, policy)) ?? (await quota.refuses(policy.quotas, task));
}

async function keepPayload(
  { store, values }: AdmitDeps,
  { taskId, digest }: Identity,
  payload: string,
  expiresAt: number,
): Promise<Head["input"]> {
  const bytes = Buffer.byteLength(payload);
  if (bytes <= MAX_HEAD_PAYLOAD_BYTES) return { text: payload };
  if (bytes > MAX_INLINE_BYTES) return values.keep(taskId, payload);
  await store.putInput(taskId, digest, payload, expiresAt);
  return { item: true };
}

function count({ telemetry }: AdmitDeps, head: Head): void {
  const { taskId, messageId, from, to, traceparent, reject } = head;
  telemetry.info(reject === undefined ? "a task is accepted" : "a task is rejected", {
    taskId,
    messageId,
    from,
    to,
    traceparent,
    ...(reject === undefined ? { skill: head.skill } : { code: reject.code }),
  });
  telemetry.count("TasksDecided", 1, { runtime: to, outcome: reject?.code ?? "accepted" });
}

/** Says what was decided, again if need be, and hands an accepted task on. */
async function answer(deps: AdmitDeps, head: Head, digest: string, repeated: boolean): Promise<void> {
  const { publisher, store, telemetry } = deps;
  if (head.digest !== digest)
    telemetry.warn("another body under a known message id changes nothing", {
      taskId: head.taskId,
      messageId: head.messageId,
      from: head.from,
      to: head.to,
    });
  await publisher.repeat(head, firstEvent(head), head.decidedAt);
  if (head.reject !== undefined) return;
  if (repeated && isTerminal(head.state)) {
    const last = await store.last(head.taskId);
    const end = last?.events?.at(-1);
    if (last !== undefined && end !== undefined) await publisher.repeat(head, end, last.at);
  } else if (head.epoch === 0) await deps.hint(hintOf(head));
}
