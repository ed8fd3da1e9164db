import type { HttpFacts } from "../../cards/peer-facts.ts";
import type { RemoteConfig } from "../../config/remotes.ts";
import type { GuardedFetch } from "../../http/guarded-fetch.ts";
import type { Part } from "../../wire/message.ts";
import type { TaskState } from "../../wire/states.ts";
import type { RemoteCard } from "../card.ts";
import type { BlastEntry, HitlEntry } from "../extensions.ts";

/**
 * How a hosted agent of kind `remote` speaks with an A2A agent over HTTP (docs/remotes.md): what goes out, and what comes back as
 * typed, bounded values, the same for A2A 0.3 and 1.0. Whatever fails is a RemoteError, or the reason of `signal`.
 */

/** A message to the agent. Its ids follow from our task, so that the same message has the same ids whenever it is sent. */
export interface Outgoing {
  readonly messageId: string;
  /** Of the whole conversation: one for each of our tasks. For a reply what the agent has called it, if it has. */
  readonly contextId: string;
  /** The id of the skill on the agent's card. */
  readonly skill: string;
  /** At least one. Of a part's metadata `mimeType` goes along, and nothing else. */
  readonly parts: readonly Part[];
  /** Media types that the answer may have; any, if none is given. */
  readonly accepts?: readonly string[];
  /** `false` to send without a stream although the agent has streams. */
  readonly stream?: boolean;
  /** How it was held before it is sent, which the agent is told; as its card declares for the skill, if it is not given. */
  readonly held?: Held | undefined;
}

/** Who has agreed to a message, and how far its skill reaches (docs/remotes.md, extensions). */
export type Held = Pick<HitlEntry, "mode" | "vetoTtlMs"> & Partial<Pick<BlastEntry, "radius">>;

/** An answer to what a task asks (`input-required`, `auth-required`). */
export interface Reply extends Outgoing {
  readonly taskId: string;
}

/** An artifact, or more of one. */
export interface SeenArtifact {
  readonly id: string;
  readonly name?: string;
  readonly description?: string;
  /** Without the observed ones; `raw` is base64. */
  readonly parts: readonly Part[];
  /** Whether the parts go on where those of before end; they replace them otherwise. */
  readonly append: boolean;
  /** Whether nothing of it follows; unknown in a snapshot of a task that is not over. */
  readonly last: boolean;
}

/** A value of an extension, such as what the task has cost: a data part that says of which kind it is. */
export interface ObservedData {
  /** In lower case, such as `application/vnd.protolabs.cost-v1+json`. */
  readonly mimeType: string;
  readonly data: unknown;
}

/** What an agent says: with a state, or in place of a task. */
export interface SeenMessage {
  readonly messageId?: string;
  /** Its text parts, joined by line feeds. */
  readonly text: string;
  /** All parts, without the observed ones. */
  readonly parts: readonly Part[];
}

/** What one answer, or one event of a stream, says. */
export interface Seen {
  /**
   * - `task`: all of it as it is now; `artifacts` are all there are
   * - `status`: a new state
   * - `artifact`: one artifact, or more of it
   * - `message`: the whole answer, without a task; nothing follows
   */
  readonly kind: "task" | "status" | "artifact" | "message";
  readonly taskId?: string;
  readonly contextId?: string;
  /** Of `task` and `status`, unless the agent says that it does not know. */
  readonly state?: TaskState;
  /** What the agent says with the state, as text. */
  readonly text?: string;
  /** The same whole: of `message` the answer. */
  readonly message?: SeenMessage;
  readonly artifacts: readonly SeenArtifact[];
  readonly observed: readonly ObservedData[];
}

/** What follows on a stream. It is read, or closed: until then it holds its connection. */
export interface Rest extends AsyncIterable<Seen> {
  close(): Promise<void>;
}

/** A message was taken. */
export interface Started {
  /** The first thing that the agent has said: of a task (with its id), or a whole answer. */
  readonly seen: Seen;
  /** What follows, if there is a stream, to the end of the task or of the stream. */
  readonly rest?: Rest;
}

/**
 * What came of cancelling:
 *
 * - `canceled`: it is
 * - `asked`: the agent has heard it, and the task is not over yet
 * - `over`: the task was over before, as `seen` says
 * - `gone`: the agent has no such task
 * - `unsupported`: the agent does not cancel this one, or any
 */
export type Canceled =
  | { readonly outcome: "canceled" | "asked" | "over"; readonly seen: Seen }
  | { readonly outcome: "gone" | "unsupported" };

/** A conversation with one remote agent. */
export interface Exchange {
  /** Whether messages are sent with a stream: as the card says, or the file while there is no card. */
  readonly streams: boolean;
  readonly protocol: RemoteCard["protocol"];
  /**
   * Sends the first message of a task, once: it is never repeated here. Returns as soon as the agent has told the task,
   * or has answered without one.
   */
  start(of: Outgoing, signal: AbortSignal): Promise<Started>;
  /** The same of a further message of a task. */
  reply(of: Reply, signal: AbortSignal): Promise<Started>;
  /**
   * Looks for a message that may have been sent: the task whose history has it.
   *
   * @returns `none`: no task of the conversation has it; `unknown`: the agent cannot be asked (A2A 0.3), or shows no histories
   */
  find(
    of: Pick<Outgoing, "contextId" | "messageId">,
    signal: AbortSignal,
  ): Promise<Seen | "none" | "unknown">;
  /** The task as it is now. */
  get(taskId: string, signal: AbortSignal): Promise<Seen>;
  /** Takes up the stream of a task again: first the task as it is now, then as {@link Started.rest}. */
  follow(taskId: string, signal: AbortSignal): AsyncIterable<Seen>;
  cancel(taskId: string, signal: AbortSignal): Promise<Canceled>;
}

/** Where the conversation belongs. */
export interface ExchangeTrace {
  /** The same through the whole chain of calls. */
  readonly correlationId: string;
  /** The message that is the cause. */
  readonly parentId?: string | undefined;
  /** As W3C Trace Context has it. */
  readonly traceparent?: string | undefined;
  /** Our runtime that asks. */
  readonly caller: string;
  /** How often the work was handed on, this time included (shared/policy/choosing/hops.ts). */
  readonly hops: number;
}

/** What an exchange is made of: `await openExchange(options)`. */
export interface ExchangeOptions {
  readonly remote: Pick<RemoteConfig, "name" | "url" | "headers" | "streaming">;
  /** What is known by its last good card; a card of another address is not looked at. Without any it is asked as A2A 1.0. */
  readonly facts?: Pick<HttpFacts, "url" | "card"> | undefined;
  /** `remoteFetch(remote, …)`: who we are there, and what may be reached. */
  readonly fetch: GuardedFetch;
  readonly trace: ExchangeTrace;
  /** What earlier exchanges have told of the same task: what is told now must go with it. */
  readonly before?: Pick<Seen, "taskId" | "contextId"> | undefined;
  readonly limits?: Partial<ExchangeLimits>;
}

/** Bounds of an exchange; each has a default (docs/limits.md). */
export interface ExchangeLimits {
  /** To answer a message, or to begin a stream, in milliseconds. */
  readonly sendMs: number;
  /** To answer anything else. */
  readonly askMs: number;
  /** Of one stream, in events. */
  readonly streamEvents: number;
  /** Of one stream, in milliseconds; then it ends as `timeout`, and the task can be asked for with `get`. */
  readonly streamMs: number;
}
