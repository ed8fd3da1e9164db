import type * as z from "zod";
import type { ArtifactRef, Message, Part as MessagePart } from "../wire/index.ts";
import type { ApprovalDenied, DelegationError, FatalError, ReplyTimeout } from "./errors.ts";

/** A piece of content that a handler gives out. Text and data are encoded as UTF-8; bytes are taken as they are. */
export type Part =
  | { readonly text: string; readonly mediaType?: string; readonly filename?: string }
  | { readonly data: unknown; readonly mediaType?: string; readonly filename?: string }
  | { readonly bytes: Uint8Array; readonly mediaType: string; readonly filename?: string };

/** A task as its handler sees it. */
export interface Task<Input = unknown, Settings = unknown> {
  readonly id: string;
  /** The runtime that sent the task. */
  readonly from: string;
  /** The runtime that was addressed. */
  readonly to: string;
  readonly skill: string;
  /** What the skill's `input` schema made of the message. */
  readonly input: Input;
  /** The whole message in one shape, whichever form the peer sent. */
  readonly message: Message;
  /** The agent's own settings out of `agents.yaml`. */
  readonly settings: Settings;
  /** Whether tools that write memory may be used for it: `allowMemoryWrite` of the agent's policy (docs/policy.md). */
  readonly memoryWrite: boolean;
  readonly contextId?: string;
  readonly clientTaskRef?: string;
  /** When the task is over at the latest, in milliseconds since 1970. */
  readonly deadline: number;
}

/** What `step.run` hands to the function that it runs. */
export interface Attempt {
  /** Fires when the task is cancelled, its deadline or the step's own passes, or its worker has lost it. */
  readonly signal: AbortSignal;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
}

/** A length of time: milliseconds, or a number with a unit, such as `"90s"`, `"5m"`, `"2h"`, `"7d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

/** How often a step is tried, and how long the pauses between two attempts are: exponential, with full jitter. */
export interface Retry {
  /** At most so many attempts, the first included; 3 unless said otherwise, up to 100. */
  readonly attempts?: number;
  /** The longest first pause; it doubles with each attempt. One second unless said otherwise. */
  readonly initial?: Duration;
  /** The longest pause. One minute unless said otherwise. */
  readonly max?: Duration;
}

export interface RunOptions {
  /** `false` for one attempt. */
  readonly retry?: Retry | false;
  /** How long one attempt may take; its signal fires then, and the attempt has failed. */
  readonly timeout?: Duration;
}

export interface AskOptions<T extends z.ZodType> {
  /** What the answer must be; a text unless said otherwise. An answer that does not fit is asked for again. */
  readonly schema?: T;
  /** How long to wait; then {@link ReplyTimeout} is thrown. */
  readonly timeout?: Duration;
}

export interface ApproveOptions {
  readonly timeout?: Duration;
  /**
   * What a missing answer means: `"deny"` throws {@link ApprovalDenied}, `"throw"` (the default) {@link ReplyTimeout}, and
   * `"approve"` goes on, so that the requester has a veto. Its time begins when the question is on its stream: nobody is
   * silent who was not asked.
   */
  readonly onTimeout?: "approve" | "deny" | "throw";
  /** Whose answer counts: the requester's unless it is said, or only that of the operator (`sluice approve`). */
  readonly by?: "requester" | "operator";
}

/** A piece of a message to another agent: as a handler makes it, or as it has got it. */
export type DelegatePart = Part | MessagePart;

export interface DelegateOptions {
  /**
   * The agent that is to do the task: its runtime, or what it alone is called. It is never replaced by another. Without
   * it one that has the skill is chosen (docs/choosing.md).
   */
  readonly to?: string | undefined;
  /** The skill: a slug, or `channelRef/slug` for a runtime that shows no card. With `to` it is `task` unless said otherwise. */
  readonly skill?: string | undefined;
  /** What the task is about, such as a repository and a commit, for skills that rest for a time for each subject. */
  readonly subject?: string | undefined;
  /** What is asked of it. */
  readonly message: string | DelegatePart | readonly DelegatePart[];
  /** How long to wait; then {@link DelegationError} is thrown. Never longer than this task may take itself. */
  readonly timeout?: Duration;
  /** Called with what the agent says of its progress: the newest text, as it comes, perhaps more than once. */
  readonly onStatus?: (text: string) => void;
}

/** An artifact that another agent has given out: where it is, and what it must be. */
export interface DelegatedArtifact extends ArtifactRef {
  /**
   * Fetches it; to be called within `step.run`, for it takes time.
   *
   * @throws Error when it is larger than 64 MiB, is no longer there, or is not what its digest says
   */
  bytes(): Promise<Uint8Array>;
}

/** What came of a task that was handed on. */
export interface Delegated {
  /** The runtime that has done it. */
  readonly by: string;
  readonly text: string;
  /** The text read as JSON, where it is JSON. */
  readonly data?: unknown;
  readonly artifacts: readonly DelegatedArtifact[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface ArtifactOptions {
  /** Whether the artifact of this name goes on with these parts; the first call begins it. */
  readonly append?: boolean;
}

export interface EachOptions {
  /** How many items are worked on at once; all unless said otherwise. */
  readonly concurrency?: number;
}

/** The checkpoints of a handler. Each call is stored once; a handler that is run again gets what is stored. */
export interface Step {
  /**
   * Runs `fn` once and stores its result, which JSON must be able to hold; when the handler is run again the stored
   * result is returned and `fn` is not called. A step is known by its name, never by its position. An error is tried
   * again, unless it is a {@link FatalError}; what fails for good is stored too, and thrown again on each run.
   */
  run<T>(name: string, fn: (attempt: Attempt) => T | Promise<T>, options?: RunOptions): Promise<T>;
  /**
   * Tells the requester how far the work is, in words, and by `data` (what JSON can hold, at most 16 KiB) for programs.
   * Texts that follow each other quickly are merged; the newest wins, with its data.
   */
  status(text: string, data?: unknown): void;
  /**
   * Gives out an artifact, exactly once in the requester's eyes however often the handler is run.
   * With `append` calls of the same name, one after the other, make one artifact: each gives out all of it so far.
   */
  artifact(name: string, parts: string | Part | readonly Part[], options?: ArtifactOptions): Promise<void>;
  /** Waits, from a second to a year; while the task has nothing else to do, nothing runs and nothing is paid. */
  sleep(name: string, duration: Duration): Promise<void>;
  /** Waits until a time, or not at all when it has passed. */
  sleepUntil(name: string, time: Date): Promise<void>;
  /**
   * Asks the requester, and waits for the answer without running. One question is open per task; further ones wait.
   *
   * @throws ReplyTimeout
   */
  ask<T extends z.ZodType = z.ZodString>(
    name: string,
    prompt: string,
    options?: AskOptions<T>,
  ): Promise<z.output<T>>;
  /**
   * Asks the requester for approval. Only an explicit approval approves.
   *
   * @throws ApprovalDenied, which ends the task as `auth_not_satisfied` unless it is caught; ReplyTimeout
   */
  approve(name: string, prompt: string, options?: ApproveOptions): Promise<void>;
  /**
   * Hands a task on to another agent as this one, and waits for its end without running. If this task ends before, the
   * other is cancelled.
   *
   * @throws DelegationError when it failed, was refused or cancelled, asks something, or took too long, and when this
   *   agent may not hand it on
   */
  delegate(name: string, options: DelegateOptions): Promise<Delegated>;
  /**
   * Works on several items at once, each in a branch of its own that is named by its key.
   *
   * @param keyOf a name that is the item's own whatever its position; no two items may share it
   */
  each<T, R>(
    items: readonly T[],
    keyOf: (item: T) => string,
    fn: (item: T, step: Step) => Promise<R>,
    options?: EachOptions,
  ): Promise<R[]>;
  /** The same steps under names of their own, for what runs beside something else. */
  branch(name: string): Step;
  /** Fires when the task is cancelled, its deadline passes, or its worker has lost it. */
  readonly signal: AbortSignal;
  /** Writes a structured log line with the task's ids; silent while stored steps are gone through again. */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** The time of the last stored step: the same when the handler is run again. */
  now(): Date;
  /** A number from 0 to 1, the same when the handler is run again. */
  random(): number;
  /** A UUID, the same when the handler is run again. */
  uuid(): string;
}

/** An artifact that comes with the outcome; `name` is its id, unique in the task. */
export interface OutcomeArtifact {
  readonly name: string;
  readonly parts: string | Part | readonly Part[];
}

/** What a handler returns: a text, or any of text, data and artifacts. */
export type Outcome =
  | string
  | {
      readonly text?: string;
      readonly data?: unknown;
      readonly artifacts?: readonly OutcomeArtifact[];
      /** Numbers for the result's `Metrics`. */
      readonly metrics?: Readonly<Record<string, number>>;
    };
