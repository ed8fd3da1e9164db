import type { Part, TaskState } from "../../wire/index.ts";
import { isTerminal } from "../../wire/states.ts";
import type { ObservedData, Seen } from "../exchange/index.ts";

/**
 * What is stored of an exchange with a remote agent, as the result of its step (docs/remotes.md, "An agent that is a remote
 * one"). What was known before goes along, so that the last one tells how it stands.
 */
export interface Told {
  /** The task's id at the remote. */
  readonly taskId?: string;
  /** What the remote calls the conversation. */
  readonly contextId?: string;
  readonly state?: TaskState;
  /** What it says with the state, where that is new, or as its whole answer. */
  readonly says?: { readonly messageId?: string; readonly text: string; readonly parts: readonly Part[] };
  /** It has answered without a task: nothing follows. */
  readonly whole?: true;
  /** What of its artifacts was not given out before. */
  readonly artifacts: readonly ToldArtifact[];
  readonly observed: readonly ObservedData[];
  /** The stream is read on, by the worker that has it. */
  readonly live?: true;
  /** The exchange has come to nothing. */
  readonly trouble?: Trouble;
}

/** An artifact of the remote's, or more of one. */
export interface ToldArtifact {
  /** The remote's. */
  readonly id: string;
  /** What we give it out as. */
  readonly as: string;
  /** Whether it is a text, which may grow; what is told is then only what is new of it. */
  readonly grows: boolean;
  readonly parts: readonly Part[];
  readonly mark: Mark;
}

/** By what an artifact is known again: its whole content's digest, and of a text how long it is. */
export interface Mark {
  readonly digest: string;
  /** In UTF-16 code units; absent of what is no text. */
  readonly length?: number;
}

/** Why an exchange has come to nothing. */
export interface Trouble {
  /** For the requester: it may hold the remote's words. */
  readonly reason: string;
  /** A `RemoteErrorCode`, or `circuit_open`, `no_credentials`, `not_begun`, `unknown_fate`; absent of older ones. */
  readonly code?: string;
  /** Whether to try again. */
  readonly again: boolean;
  /** Of a message: whether the remote may have it all the same. */
  readonly unsure?: boolean;
  /** How long to wait at least, in milliseconds. */
  readonly waitMs?: number;
}

/** Whether nothing follows at the remote. */
export function isOver({ state, whole }: Pick<Told, "state" | "whole">): boolean {
  return whole === true || (state !== undefined && isTerminal(state));
}

/** Whether the remote waits for an answer. */
export function asks({ state }: Pick<Told, "state">): boolean {
  return state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}

/** Whether a task asks what it has asked before: then it has not read the answer. */
export function isSameQuestion(
  { state, message, text }: Pick<Seen, "state" | "message" | "text">,
  asked: Pick<Told, "state" | "says">,
): boolean {
  if (state !== asked.state) return false;
  if (message?.messageId !== undefined && asked.says?.messageId !== undefined)
    return message.messageId === asked.says.messageId;
  return (message?.text ?? text ?? "") === (asked.says?.text ?? "");
}
