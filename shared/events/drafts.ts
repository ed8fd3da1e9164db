import type { StoredEvent, ValueRef } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import {
  type ArtifactRef,
  acceptedEvent,
  artifactEvent,
  type ErrorCode,
  rejectedEvent,
  resultEvent,
  statusEvent,
  type TaskRef,
  type TaskState,
  type WireEvent,
} from "../wire/index.ts";
import * as z from "../zod.ts";

/** An event before it has a revision and a time. */
export type EventDraft =
  | {
      readonly kind: "status";
      readonly state: TaskState;
      readonly content?: string;
      /** What JSON can hold, for programs. */
      readonly data?: unknown;
      readonly error?: { readonly code: ErrorCode; readonly message: string };
    }
  | {
      readonly kind: "artifact";
      readonly artifact: ArtifactRef;
      readonly value: ValueRef;
      /** The task's state, working unless it is said. */
      readonly state?: TaskState;
    }
  | {
      readonly kind: "result";
      readonly state: TaskState;
      readonly content?: string;
      readonly artifacts?: readonly ArtifactRef[];
      readonly error?: { readonly code: ErrorCode; readonly message: string };
      readonly metrics: Readonly<Record<string, number>>;
    };

/** The longest message of an error that goes to a peer, in characters. */
const MAX_ERROR_CHARACTERS = 2_000;

/**
 * An error's message as peers get it: never longer than a screen. Half a surrogate pair, be it the text's own (V8
 * quotes single code units) or left by the cut, becomes U+FFFD: no table and no peer takes it.
 */
export function errorMessage(text: string): string {
  const short = text.length <= MAX_ERROR_CHARACTERS ? text : `${text.slice(0, MAX_ERROR_CHARACTERS)}…`;
  return short.toWellFormed();
}

/** The event on the wire, with its revision and time. */
export function wireEvent(task: TaskRef, draft: EventDraft, revision: number, at: number): WireEvent {
  const createdAt = new Date(at).toISOString();
  switch (draft.kind) {
    case "status":
      return statusEvent(task, { ...draft, revision }, createdAt);
    case "artifact":
      return artifactEvent(task, { ...draft, revision }, createdAt);
    case "result":
      return resultEvent(
        task,
        { ...draft, artifacts: draft.artifacts && [...draft.artifacts], revision },
        createdAt,
      );
  }
}

/** Fixes the bytes of events, the first at the revision after `revision`. */
export async function storedEvents(
  values: Values,
  task: TaskRef,
  drafts: readonly EventDraft[],
  after: { readonly revision: number; readonly at: number },
): Promise<StoredEvent[]> {
  return Promise.all(
    drafts.map(async (draft, index) => {
      const event = wireEvent(task, draft, after.revision + 1 + index, after.at);
      const body = await values.keep(task.taskId, event.body);
      const stored = { kind: event.kind, revision: event.revision, body };
      if (draft.kind !== "artifact") return stored;
      const { id, key, mediaType, digest } = draft.artifact;
      return { ...stored, artifact: { id, key, mediaType, digest, value: draft.value } };
    }),
  );
}

/** What is told of the progress: a text for people, and data as JSON text for programs. */
export interface Progress {
  readonly text: string;
  readonly data?: string;
}

const told = z.whenUsed(() =>
  z.object({ payload: z.object({ content: z.string(), data: z.optional(z.unknown()) }) }),
);

/** What a stored status event tells, where it is kept in place: progress always is. */
export function toldBy({ body }: StoredEvent): Progress | undefined {
  if (!("text" in body)) return undefined;
  const read = told().safeParse(JSON.parse(body.text)).data;
  if (read === undefined) return undefined;
  const { content: text, data } = read.payload;
  return data === undefined ? { text } : { text, data: JSON.stringify(data) };
}

/** What the head tells of the first event. It is made anew each time, from the same facts, to the same bytes. */
interface Decided extends TaskRef {
  readonly decidedAt: number;
  readonly clientTaskRef?: string;
  readonly reject?: { readonly code: ErrorCode; readonly message: string };
}

/** The event by which the admission was answered: `accepted` or `rejected`, always revision 1. */
export function firstEvent(head: Decided): StoredEvent {
  const createdAt = new Date(head.decidedAt).toISOString();
  const event =
    head.reject === undefined
      ? acceptedEvent(head, createdAt)
      : rejectedEvent(head, { clientTaskRef: head.clientTaskRef, ...head.reject }, createdAt);
  return { kind: event.kind, revision: event.revision, body: { text: event.body } };
}
