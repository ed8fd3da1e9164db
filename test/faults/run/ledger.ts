import type { Entry, Head } from "../../../shared/tasks/items.ts";
import type { Trace } from "../../fixtures/faults/agents/parts/program.ts";
import type { Trouble } from "./toll.ts";

/**
 * The peer's ledger: what it has published and what it got back, and beside it what lies in the table when all is over.
 * Plain data, so that it can be kept, and doctored by the tests of its checks.
 */
export interface Ledger {
  readonly tasks: readonly TaskRecord[];
  /** The length of a lease, in milliseconds. */
  readonly leaseMs: number;
  /** When it was closed, in milliseconds since 1970, by the clock of this machine. */
  readonly closedAt: number;
  /** Heads that are still to be looked at. */
  readonly due: readonly string[];
  /** Messages that are left, by queue. */
  readonly queues: Readonly<Record<string, number>>;
  /** Messages that JetStream still waits for, by durable consumer. */
  readonly consumers: Readonly<Record<string, number>>;
  readonly dead: readonly DeadLetter[];
  readonly slots: readonly SlotsRecord[];
  readonly troubles: readonly Trouble[];
  /** Events that had been seen on the stream and are no longer there, or are others. */
  readonly changed: readonly string[];
  /** Tasks that did not come to rest in time, until the host was started anew. */
  readonly stuck: readonly string[];
}

/** The slots of an agent with a limit. */
export interface SlotsRecord {
  readonly runtime: string;
  readonly max: number;
  /** The most tasks that were seen to hold one at once. */
  readonly mostLive: number;
  /** The tasks that hold one now. */
  readonly live: readonly string[];
  /** How many tasks wait, by the count and in the line. */
  readonly queued: number;
  readonly inLine: boolean;
}

export interface DeadLetter {
  readonly queue: string;
  /** The task that it is about. */
  readonly taskId: string | undefined;
  readonly body: string;
  /** Why it is there, if that is known. */
  readonly cause?: string;
  /** Whether the message was given up with it: nobody has decided it, and nobody will. */
  readonly buried: boolean;
}

/** An event as it lies on the stream. */
export interface EventRecord {
  readonly seq: number;
  /** When the stream stored it, in milliseconds since 1970, by the clock of this machine. */
  readonly at: number;
  readonly subject: string;
  readonly msgId: string;
  readonly body: string;
}

/** A control as it was published. */
export interface ControlRecord {
  readonly kind: string;
  readonly revision: number;
  readonly messageId: string;
  /** Whether it answers the question that it is for. */
  readonly good: boolean;
}

export interface TaskRecord {
  readonly taskId: string;
  readonly messageId: string;
  readonly to: string;
  readonly what: string;
  readonly ends: readonly string[];
  readonly mayWait: boolean;
  /** How often the stream has confirmed the message. */
  readonly published: number;
  /** Whether the stream still holds the message. */
  readonly onStream: boolean;
  readonly controls: readonly ControlRecord[];
  /** In the stream's order. */
  readonly events: readonly EventRecord[];
  readonly head?: Head;
  readonly entries: readonly Entry[];
  /** The bodies of the journal's events, by revision. */
  readonly bodies: Readonly<Record<number, string>>;
  /** What each step of kind `run` has stored, by its name: the name of the run; none for a step that failed. */
  readonly stored: Readonly<Record<string, string | null>>;
  readonly runs: readonly Trace[];
  /** Which process has taken which claim, as far as it was seen. */
  readonly claims: readonly { readonly epoch: number; readonly pid: number; readonly at: number }[];
  /** When the table has confirmed the entries, by place, as far as it was seen. */
  readonly confirmed: Readonly<Record<number, number>>;
  /** When its message was acknowledged for good. */
  readonly acked: readonly number[];
}

/** Something that must not be. The invariants are those of docs/proof.md. */
export interface Violation {
  readonly invariant:
    | "one-end"
    | "revisions"
    | "once"
    | "fence"
    | "committed-first"
    | "acked-after"
    | "same-answer"
    | "slots"
    | "fold"
    | "settled"
    | "no-loss"
    | "outcome";
  readonly taskId?: string;
  readonly what: string;
}
