import { taskOfSubject } from "../../shared/wire/index.ts";
import type { LogLine } from "./line.ts";

/** What stands before the rest of a task's id (docs/wire.md, ids). */
const PREFIX = "task_";

/** A task's id, or its beginning, whether or not it was written with `task_`. */
export function withPrefix(text: string): string {
  return text.startsWith(PREFIX) ? text : `${PREFIX}${text}`;
}

/** The task that a line speaks of: the one that it names, or that the subject of its message is of. */
function taskOf({ fields: { taskId, subject } }: LogLine): string | undefined {
  if (typeof taskId === "string") return taskId;
  return typeof subject === "string" ? taskOfSubject(subject) : undefined;
}

/** The tasks whose id begins in one way, as their lines come. */
export class NamedTasks {
  readonly #beginning: string;
  readonly #tasks = new Set<string>();
  readonly #ofRequest = new Map<string, Set<string>>();

  /** @param beginning with `task_` */
  constructor(beginning: string) {
    this.#beginning = beginning;
  }

  /** Whether a line is of one of them; a line of Lambda's own is, if it was found. */
  readonly take = (line: LogLine): boolean => {
    if (line.level === "") return true;
    const task = taskOf(line);
    if (task?.startsWith(this.#beginning) !== true) return false;
    this.#tasks.add(task);
    const { requestId } = line;
    if (requestId !== undefined)
      this.#ofRequest.set(requestId, (this.#ofRequest.get(requestId) ?? new Set()).add(task));
    return true;
  };

  /**
   * Whose a line is, where that is not the same of all lines so far; of a line of Lambda's own all that it was found
   * by, for an invocation may be of several.
   */
  of(line: LogLine): readonly string[] {
    if (this.#tasks.size <= 1) return [];
    const task = taskOf(line);
    return task !== undefined ? [task] : [...(this.#ofRequest.get(line.requestId ?? "") ?? [])];
  }
}
