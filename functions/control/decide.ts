import { errorMessage } from "../../shared/events/drafts.ts";
import { fold, stateOf, type View, type Waiting } from "../../shared/tasks/fold.ts";
import type { Entry, OpenedStep } from "../../shared/tasks/items.ts";
import { ASKS_OPERATOR, type Control, type ErrorCode, type TaskState } from "../../shared/wire/index.ts";
import * as z from "../../shared/zod.ts";

/** The largest reply as JSON, in bytes (docs/wire.md §10). */
export const MAX_REPLY_BYTES = 262_144;

/** What a control puts into the journal of a live task. */
export interface Change {
  readonly kind: "put";
  /** The status event that it causes. */
  readonly event?: {
    readonly state: TaskState;
    readonly content?: string;
    /** Whether the prompt of the open question follows the content. */
    readonly prompt?: boolean;
    /** For programs: whom an open question asks. */
    readonly data?: typeof ASKS_OPERATOR;
    readonly error?: { readonly code: ErrorCode; readonly message: string };
  };
  readonly answer?: {
    readonly step: string;
    /** JSON text. */
    readonly value: string;
  };
  /** The open question, asked anew. */
  readonly opens?: readonly OpenedStep[];
  readonly end?: NonNullable<Entry["end"]>;
}

/** What becomes of a control of a live task. */
export type Decision =
  | Change
  /** The journal has it already: it is delivered once more. */
  | { readonly kind: "known" }
  /** A copy of an earlier answer. */
  | { readonly kind: "replay" }
  /** It is to be terminated. */
  | { readonly kind: "refuse"; readonly reason: string };

const KINDS: ReadonlySet<string> = new Set(["cancel", "status", "input_reply", "auth_reply"]);

/** Whether a control is of a kind that the wire knows (docs/wire.md §9). */
export function isKnownKind({ kind }: Control): boolean {
  return KINDS.has(kind);
}

/**
 * Whether an entry is what a control has put. Peers may use one message id for several cancels and requests for status;
 * an answer under a message id that has been answered with is a copy, whatever its revision.
 */
export function isCausedBy({ control }: Entry, { kind, messageId, revision }: Control): boolean {
  if (control?.kind !== kind || control.messageId !== messageId) return false;
  return kind === "input_reply" || kind === "auth_reply" || control.revision === revision;
}

/** The entry that a control has put. */
export function entryOf(entries: readonly Entry[], asked: Control): Entry | undefined {
  return entries.find((entry) => isCausedBy(entry, asked));
}

/**
 * Decides what a control means to a live task (docs/wire.md §9).
 *
 * @param entries the task's journal, whole and in order
 */
export function decide(entries: readonly Entry[], asked: Control): Decision {
  if (entryOf(entries, asked) !== undefined) return { kind: "known" };
  const view = fold(entries);
  switch (asked.kind) {
    case "cancel":
      return cancelled(asked);
    case "status":
      return {
        kind: "put",
        event: { state: stateOf(view), prompt: view.question !== undefined, ...whomAsks(view.question) },
      };
    case "input_reply":
    case "auth_reply":
      return reply(view, asked, (entries.at(-1)?.revision ?? 1) + 1);
    default:
      return { kind: "refuse", reason: "unknown control" };
  }
}

function cancelled({ reason }: Control): Change {
  const state = "TASK_STATE_CANCELED";
  const error = { code: "canceled" as const, message: errorMessage(reason ?? "cancel requested") };
  return { kind: "put", event: { state, error }, end: { state, ...error } };
}

/** @param next the revision of the next event */
function reply(view: View, asked: Control, next: number): Decision {
  const { question } = view;
  if (question?.asked === undefined) return { kind: "refuse", reason: "no question is open" };
  const wanted = question.kind === "approve" ? "auth_reply" : "input_reply";
  if (asked.kind !== wanted)
    return { kind: "refuse", reason: `the open question is answered by ${wanted}, not by ${asked.kind}` };
  // Whoever has not seen the question cannot have meant it.
  if (asked.revision <= question.asked) return { kind: "replay" };
  // A control comes from the requester; the operator's answer comes another way (shared/events/operator-answer.ts).
  if (question.by === "operator") return askAgain(question, "only the operator may approve this.", next);
  return wanted === "auth_reply" ? approval(question, asked, next) : input(question, asked, next);
}

function input(question: Waiting, { a2a }: Control, next: number): Decision {
  const value = JSON.stringify(a2a ?? null);
  const bytes = Buffer.byteLength(value);
  if (bytes > MAX_REPLY_BYTES)
    return askAgain(question, `expected a reply of at most ${MAX_REPLY_BYTES} bytes, got ${bytes}`, next);
  return {
    kind: "put",
    event: { state: "TASK_STATE_WORKING", content: "input received" },
    answer: { step: question.name, value },
  };
}

const approvalReply = z.whenUsed(() =>
  z.object({
    approve: z.boolean(),
    denyReason: z.orElse(z.string(), undefined),
  }),
);

/** A denial has no event of its own: the result that it leads to takes the next revision. */
function approval(question: Waiting, { a2a, reason }: Control, next: number): Decision {
  const given = approvalReply().safeParse(a2a).data;
  if (given === undefined) return askAgain(question, "expected approve to be true or false", next);
  const { approve } = given;
  const why = given.denyReason?.trim() || reason?.trim();
  const value = approve || !why ? { approve } : { approve, denyReason: errorMessage(why) };
  return {
    kind: "put",
    ...(approve && { event: { state: "TASK_STATE_WORKING", content: "authorization received" } }),
    answer: { step: question.name, value: JSON.stringify(value) },
  };
}

function whomAsks(question: Pick<Waiting, "by"> | undefined) {
  return question?.by === "operator" ? { data: ASKS_OPERATOR } : {};
}

/** The question stays open, but only who has seen why it was asked again can answer it. */
function askAgain({ since: _, ...question }: Waiting, content: string, next: number): Change {
  const state = question.kind === "approve" ? "TASK_STATE_AUTH_REQUIRED" : "TASK_STATE_INPUT_REQUIRED";
  return {
    kind: "put",
    event: { state, content, prompt: true, ...whomAsks(question) },
    opens: [{ ...question, asked: next }],
  };
}

/** The event by which the open question was asked at first: later ones also say what was wrong with an answer. */
export function promptOf(entries: readonly Entry[]): NonNullable<Entry["events"]>[number] | undefined {
  const name = fold(entries).question?.name;
  const first = entries
    .flatMap(({ opens = [] }) => opens)
    .find((opened) => opened.name === name && opened.asked !== undefined);
  return entries
    .flatMap(({ events = [] }) => events)
    .find(({ revision }) => first !== undefined && revision === first.asked);
}
