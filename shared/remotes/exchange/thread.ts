import type { Reading } from "../../wire/reading.ts";
import { isTerminal, type TaskState } from "../../wire/states.ts";
import { RemoteError } from "./errors.ts";
import { MAX_REMOTE_ARTIFACTS } from "./limits.ts";
import type { Seen } from "./types.ts";

interface Known {
  readonly artifacts: Set<string>;
  contextId?: string | undefined;
  /** In which the task has ended. */
  end?: TaskState | undefined;
}

/** What an agent has said of its tasks so far: what it says next must go with it. */
export class Thread {
  readonly #remote: string;
  readonly #tasks = new Map<string, Known>();

  readonly #before: Pick<Seen, "taskId" | "contextId">;

  /** @param before what an earlier exchange has told of the same task */
  constructor(remote: string, before: Pick<Seen, "taskId" | "contextId"> = {}) {
    this.#remote = remote;
    this.#before = before;
  }

  /**
   * Takes what was read for true, if it agrees with what was said before.
   *
   * @param taskId the task that was asked about, if it was one
   * @throws RemoteError `protocol`: it is no A2A, is about another task, changes its conversation, or goes on after the end;
   *   `too_large`: more artifacts than a task may have
   */
  take(read: Reading<Seen>, taskId?: string): Seen {
    if (!read.ok) throw this.#protocol(`what it answers is no A2A: ${read.reason}`);
    const seen = read.value;
    if (taskId !== undefined && seen.taskId !== taskId && !(seen.kind === "message" && !seen.taskId))
      throw this.#protocol("it answers about another task than it was asked about");
    const before = this.#before;
    if (before.taskId !== undefined && seen.taskId !== undefined && seen.taskId !== before.taskId)
      throw this.#protocol("it answers about another task than before");
    if (before.contextId !== undefined && seen.contextId !== undefined && seen.contextId !== before.contextId)
      throw this.#protocol("it moves its task to another conversation");
    if (seen.taskId !== undefined && seen.kind !== "message") this.#note(seen.taskId, seen);
    return seen;
  }

  #note(taskId: string, seen: Seen): void {
    const known: Known = this.#tasks.get(taskId) ?? { artifacts: new Set() };
    this.#tasks.set(taskId, known);
    if (seen.contextId !== undefined && known.contextId !== undefined && seen.contextId !== known.contextId)
      throw this.#protocol("it moves its task to another conversation");
    if (seen.state !== undefined && known.end !== undefined && seen.state !== known.end)
      throw this.#protocol(`its task goes on as ${seen.state} after it has ended as ${known.end}`);
    known.contextId ??= seen.contextId;
    if (seen.state !== undefined && isTerminal(seen.state)) known.end = seen.state;
    for (const { id } of seen.artifacts) known.artifacts.add(id);
    if (known.artifacts.size > MAX_REMOTE_ARTIFACTS)
      throw new RemoteError(
        "too_large",
        this.#remote,
        `expected at most ${MAX_REMOTE_ARTIFACTS} artifacts of a task`,
        { sent: true },
      );
  }

  #protocol(what: string): RemoteError {
    return new RemoteError("protocol", this.#remote, what, { sent: true });
  }
}
