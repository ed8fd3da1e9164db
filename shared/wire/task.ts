import * as z from "../zod.ts";
import { BINDING, VERSION } from "./envelope.ts";
import { agentId } from "./ids.ts";
import { msgIdOf } from "./msg-ids.ts";
import { given, optional, optionalText, readWith } from "./reading.ts";
import { taskSubject } from "./subjects.ts";

/** A place in Discord; Sluice has none, and refuses what needs one. */
export interface DiscordContext {
  readonly guildId?: string;
  readonly channelId?: string;
  readonly threadId?: string;
  readonly messageId?: string;
  readonly requestedBy?: string;
  readonly requestedById?: string;
}

/** How a delegator wants its task done and answered. */
export interface Delivery {
  /** Seconds from acceptance, positive. */
  readonly timeoutSec?: number;
  /** How many further hops the executor may delegate; 0 and absent mean none. */
  readonly maxDelegationDepth?: number;
  readonly resultVisibility?: string;
  readonly discordTranscriptMode?: string;
  readonly shareDiscordContext?: boolean;
  /** Only when it names anything. */
  readonly discordContext?: DiscordContext;
  readonly coPresentFrom?: string;
}

/** The person who asked. */
export interface OriginRequester {
  readonly discordUserId?: string;
  readonly discordUsername?: string;
  readonly discordGuildId?: string;
}

/** The runtime that the request came from; `runtimeAgentId` must be the sender. */
export interface OriginRuntimeRef {
  readonly runtimeAgentId?: string;
  readonly botAgentId?: string;
  readonly channelRef?: string;
  readonly displayName?: string;
}

/** What a task message asks for (docs/wire.md §6). */
export interface TaskRequest {
  /** The peer's message as it was sent; {@link readMessage} brings it into one shape. Never null. */
  readonly a2a: unknown;
  readonly channelRef: string;
  readonly skillId: string;
  readonly userVisibleSummary?: string;
  /** At most 1,024 characters. */
  readonly clientTaskRef?: string;
  readonly contextId?: string;
  readonly delivery: Delivery;
  readonly originRequester?: OriginRequester;
  readonly originRuntimeRef?: OriginRuntimeRef;
}

/** It is stored with the decision, and echoed by a rejection (docs/wire.md §10). */
const MAX_CLIENT_TASK_REF = 1_024;

const clientTaskRef = z.whenUsed(() =>
  z.string().check(z.maxLength(MAX_CLIENT_TASK_REF, `expected at most ${MAX_CLIENT_TASK_REF} characters`)),
);
const filled = z.whenUsed(() =>
  z.string().check(z.refine((text) => text.trim() !== "", "expected text that is not blank")),
);
const optionalAgentId = z.whenUsed(() => z.pipe(optionalText(), z.optional(agentId())));

/** Texts by name, of which those that are empty do not count; absent when none is left. */
function texts(...names: string[]) {
  const shape = Object.fromEntries(names.map((name) => [name, optionalText()]));
  return optional(filledIn(z.object(shape)));
}

function filledIn<T extends object>(schema: z.ZodMiniType<T>) {
  return z.pipe(
    schema,
    z.transform((found) => nonEmpty(given(found))),
  );
}

function nonEmpty<T extends object>(found: T): T | undefined {
  return Object.keys(found).length === 0 ? undefined : found;
}

const delivery = z.whenUsed(() =>
  z.pipe(
    z.object({
      timeoutSec: z.pipe(
        optional(z.int()),
        z.transform((seconds) => (seconds !== undefined && seconds > 0 ? seconds : undefined)),
      ),
      maxDelegationDepth: z.pipe(
        optional(z.int()),
        z.transform((depth) => (depth === undefined ? depth : Math.max(0, depth))),
      ),
      resultVisibility: optionalText(),
      discordTranscriptMode: optionalText(),
      shareDiscordContext: optional(z.boolean()),
      discordContext: texts("guildId", "channelId", "threadId", "messageId", "requestedBy", "requestedById"),
      coPresentFrom: optionalText(),
    }),
    z.transform((found) => given(found)),
  ),
);

const taskRequest = z.whenUsed(
  (): z.ZodMiniType<TaskRequest> =>
    z.pipe(
      z.object({
        a2a: z
          ._default(z.unknown(), null)
          .check(z.refine((a2a) => a2a !== null, "expected a message, got none")),
        channelRef: filled(),
        skillId: filled(),
        userVisibleSummary: optionalText(),
        clientTaskRef: z.pipe(optionalText(), z.optional(clientTaskRef())),
        contextId: optionalText(),
        delivery: z.pipe(
          optional(delivery()),
          z.transform((found) => found ?? {}),
        ),
        originRequester: texts("discordUserId", "discordUsername", "discordGuildId"),
        originRuntimeRef: optional(
          filledIn(
            z.object({
              runtimeAgentId: optionalAgentId(),
              botAgentId: optionalAgentId(),
              channelRef: optionalText(),
              displayName: optionalText(),
            }),
          ),
        ),
      }),
      z.transform((found) => given(found)),
    ),
);

const echoed = z.whenUsed(() => z.object({ clientTaskRef: clientTaskRef().check(z.minLength(1)) }));

/** A task's request, or why it is answered with `invalid_envelope`, and what that answer echoes. */
export type TaskReading =
  | { readonly ok: true; readonly value: TaskRequest }
  | { readonly ok: false; readonly reason: string; readonly clientTaskRef?: string };

/**
 * Reads the payload of a task's envelope. What fails is answered by `rejected` with `invalid_envelope`. Only the shape
 * is judged here; whether the receiver wants the task is its policy's decision.
 */
export function readTaskPayload(payload: unknown): TaskReading {
  const read = readWith(taskRequest(), payload, "payload");
  if (read.ok) return read;
  return { ...read, ...echoed().safeParse(payload).data };
}

/**
 * The slug of a skill id, which is what follows its last `/`: `support/task` and `task` ask for the same skill.
 * `null` when it is no slug.
 */
export function skillSlug(skillId: string): string | null {
  const slug = skillId.slice(skillId.lastIndexOf("/") + 1);
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(slug) ? slug : null;
}

/** A message that is ready to be published. */
export interface Outgoing {
  readonly subject: string;
  readonly msgId: string;
  readonly body: string;
}

/** A task message as a delegator publishes it. */
export function taskMessage(of: {
  readonly from: string;
  readonly to: string;
  readonly messageId: string;
  readonly request: Omit<TaskRequest, "delivery"> & { readonly delivery?: Delivery };
  /** RFC 3339. */
  readonly createdAt: string;
}): Outgoing {
  const { from, to, messageId, request: payload, createdAt } = of;
  return {
    subject: taskSubject(from, to, messageId),
    msgId: msgIdOf({ kind: "task", from, to, messageId }),
    body: JSON.stringify({
      version: VERSION,
      binding: BINDING,
      messageId,
      from,
      to,
      type: "task",
      payload,
      createdAt,
    }),
  };
}
