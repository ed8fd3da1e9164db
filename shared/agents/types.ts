import type { Message } from "../wire/index.ts";

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
  readonly contextId?: string;
  readonly clientTaskRef?: string;
  /** When the task is over at the latest, in milliseconds since 1970. */
  readonly deadline: number;
}

/** What `step.run` hands to the function that it runs. */
export interface Attempt {
  /** Fires when the task is cancelled, its deadline passes, or its worker has lost it. */
  readonly signal: AbortSignal;
}

/** The checkpoints of a handler. Each call is stored once; a handler that is run again gets what is stored. */
export interface Step {
  /**
   * Runs `fn` once and stores its result, which JSON must be able to hold; when the handler is run again the stored
   * result is returned and `fn` is not called. A step is known by its name, never by its position.
   */
  run<T>(name: string, fn: (attempt: Attempt) => T | Promise<T>): Promise<T>;
  /** Tells the requester how far the work is. Texts that follow each other quickly are merged; the newest wins. */
  status(text: string): void;
  /** Gives out an artifact, exactly once in the requester's eyes however often the handler is run. */
  artifact(name: string, parts: string | Part | readonly Part[]): Promise<void>;
  /** Fires when the task is cancelled, its deadline passes, or its worker has lost it. */
  readonly signal: AbortSignal;
  /** Writes a structured log line with the task's ids; silent while stored steps are gone through again. */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void;
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
