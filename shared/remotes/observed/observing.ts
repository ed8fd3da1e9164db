import { createHash } from "node:crypto";
import { type Cost, type ObservedData, readObserved, type ToolCall, type WorldstateDelta } from "./values.ts";

/** Parts of one task that are looked at; what comes after them is not. */
export const MAX_OBSERVED = 2_000;
/** Changes of the world that are kept of one task. */
const MAX_KEPT_DELTAS = 1_000;
/** Notes that are kept of one task. */
const MAX_OBSERVED_NOTES = 20;

/** What is new in what was just seen, for whom is to hear of it. */
export interface News {
  readonly toolCalls: readonly ToolCall[];
  readonly deltas: readonly WorldstateDelta[];
}

/**
 * What a remote agent tells of one task beside its answer, put together from all that it has sent. Parts come again: with
 * each look at the task, and when the handler is run again. So a part counts once, however often it is seen; and of what
 * the task has cost and how sure the agent is, what was told last is all of it.
 */
export class Observing {
  readonly #seen = new Set<string>();
  readonly #tools = new Map<string, ToolCall["phase"]>();
  readonly #deltas: WorldstateDelta[] = [];
  readonly #notes = new Set<string>();
  #cost: Partial<Cost> = {};
  #confidence: number | undefined;
  #success: boolean | undefined;

  /** Takes what was seen, and tells what of it is new. */
  take(observed: readonly ObservedData[]): News {
    const toolCalls: ToolCall[] = [];
    const deltas: WorldstateDelta[] = [];
    for (const part of observed) {
      const isNew = this.#isNew(part);
      if (isNew === undefined) break;
      const read = readObserved(part);
      // What is told last counts, though it was told before.
      if (read.kind === "cost") this.#take(read.value, () => (this.#cost = read.value));
      else if (read.kind === "confidence")
        this.#take(read.value, () => (this.#confidence = read.value.confidence));
      else if (!isNew) continue;
      else if (read.kind === "worldstate") deltas.push(...read.value);
      else if (read.kind === "toolCall" && this.#goesOn(read.value)) toolCalls.push(read.value);
      else if (read.kind === "unread" && this.#notes.size < MAX_OBSERVED_NOTES) this.#notes.add(read.note);
    }
    this.#deltas.push(...deltas.slice(0, MAX_KEPT_DELTAS - this.#deltas.length));
    return { toolCalls, deltas };
  }

  /** Whether the agent says that it has succeeded; absent where it says nothing of it. */
  get success(): boolean | undefined {
    return this.#success;
  }

  /** What it says that it has changed. */
  get deltas(): readonly WorldstateDelta[] {
    return this.#deltas;
  }

  /** What could not be read: kinds and fields, for the log. */
  get notes(): readonly string[] {
    return [...this.#notes];
  }

  /** For the result's `Metrics`, by the names of docs/hitl.md; nothing is there of what was not told. */
  get metrics(): Readonly<Record<string, number>> {
    const { usage = {}, durationMs, costUsd } = this.#cost;
    const ended = [...this.#tools.values()];
    const told: Readonly<Record<string, number | undefined>> = {
      cost_usd: costUsd,
      ...usage,
      remote_duration_ms: durationMs,
      confidence: this.#confidence,
      success: this.#success === undefined ? undefined : Number(this.#success),
      tool_calls: ended.length || undefined,
      tool_calls_failed: ended.filter((phase) => phase === "failed").length || undefined,
      worldstate_deltas: this.#deltas.length || undefined,
    };
    return Object.fromEntries(
      Object.entries(told).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
  }

  #take({ success }: { readonly success?: boolean | undefined }, keep: () => void): void {
    keep();
    this.#success = success ?? this.#success;
  }

  /** Whether a part was not seen before; nothing when no further ones are looked at. */
  #isNew({ mimeType, data }: ObservedData): boolean | undefined {
    const digest = createHash("sha256")
      .update(JSON.stringify([mimeType, data ?? null]))
      .digest("base64");
    if (this.#seen.has(digest)) return false;
    if (this.#seen.size >= MAX_OBSERVED) return undefined;
    this.#seen.add(digest);
    return true;
  }

  /** Whether a call has come further: a copy of an earlier frame that is not quite the same tells nothing. */
  #goesOn({ toolCallId, phase }: ToolCall): boolean {
    const before = this.#tools.get(toolCallId);
    if (before !== undefined && (phase === "started" || before !== "started")) return false;
    this.#tools.set(toolCallId, phase);
    return true;
  }
}

/** As much as goes with a progress text, in bytes as JSON; one has room for more (docs/limits.md). */
const MAX_NEWS_BYTES = 12 * 1024;

/** What a requester is told of the news: the words and the data of a progress text; nothing, where there are none. */
export function progressOf({ toolCalls, deltas }: News): { text: string; data: object } | undefined {
  const last = toolCalls.at(-1);
  if (last === undefined && deltas.length === 0) return undefined;
  const text =
    last === undefined
      ? `${deltas.length} ${deltas.length === 1 ? "change" : "changes"} of the world`
      : `${JSON.stringify(last.name)}: ${last.phase}`;
  const calls = newest(toolCalls);
  const changes = newest(deltas);
  const data = {
    ...(calls.length > 0 && { toolCalls: calls }),
    ...(changes.length > 0 && { worldstateDeltas: changes }),
  };
  return { text, data };
}

/** As many of the last as there is room for. */
function newest<T>(all: readonly T[]): readonly T[] {
  let bytes = 0;
  const beyond = all.findLastIndex((of) => {
    bytes += Buffer.byteLength(JSON.stringify(of)) + 1;
    return bytes > MAX_NEWS_BYTES / 2;
  });
  return all.slice(beyond + 1);
}
