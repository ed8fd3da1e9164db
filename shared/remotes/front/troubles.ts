import type { Step } from "../../agents/types.ts";
import type { Front, FrontTask } from "./front.ts";
import { FIRST_PAUSE_MS, LONGEST_PAUSE_MS } from "./limits.ts";
import { TALK } from "./names.ts";
import type { Trouble } from "./told.ts";

/** What turns us away by itself; of all else that is tried again we are not through to it. */
const ANSWERS: readonly string[] = ["overloaded", "failed"];

/** How it goes on after a failure. */
export interface Course {
  /** Which step has failed. */
  readonly step: string;
  /** How often in a row, this time included. */
  readonly tries: number;
  /** How often it is tried again at most. */
  readonly left: number;
  /** Which of the growing pauses is next, from 0. */
  readonly pause: number;
}

/** What the first version of a stored trouble had not. */
function codeOf({ code = "unknown" }: Trouble): string {
  return code;
}

/** Whether it is tried again. */
function goesOn({ again }: Trouble, { left }: Course): boolean {
  return again && left > 0;
}

/** How long a pause is: longer each time, and as long as is asked for; in milliseconds. */
export function pauseMs(times: number, atLeastMs: number, scale: number): number {
  const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times, 30)) / scale;
  return Math.ceil(Math.max(ms, atLeastMs));
}

/**
 * Tells of exchanges that fail: the operator of each, by a line of the log without a word of the remote's; the requester
 * of what has changed.
 */
export class Troubles {
  readonly #task: Pick<FrontTask, "id" | "deadline">;
  readonly #front: Front;
  readonly #step: Pick<Step, "status">;
  /** The code of what stands between us; nothing while we are through. */
  #code: string | undefined;

  constructor(of: { task: Pick<FrontTask, "id" | "deadline">; front: Front; step: Pick<Step, "status"> }) {
    this.#task = of.task;
    this.#front = of.front;
    this.#step = of.step;
  }

  /**
   * Tells of an exchange, within its step: what is told is told before the result is stored, or along with it. Of one that
   * is cut off it is told by the run that it was cut off in.
   *
   * @param reason why it has failed, in words of our own
   */
  tell(trouble: Trouble | undefined, reason: string | undefined, course: Course): void {
    const { remote } = this.#front;
    if (trouble === undefined) {
      if (this.#code !== undefined) this.#step.status(`${remote} is reached again`);
      return;
    }
    this.#log(trouble, reason, course);
    // Why it is not tried again is the task's end, or followed by a look at the task.
    if (goesOn(trouble, course) && codeOf(trouble) !== this.#code)
      this.#step.status(this.#text(trouble, course));
  }

  /** Takes in the result of an exchange as it is stored, by this run or an earlier one. */
  take(trouble: Trouble | undefined): void {
    this.#code = trouble && codeOf(trouble);
  }

  #log(trouble: Trouble, reason: string | undefined, course: Course): void {
    const { step, tries, pause } = course;
    const { waitMs } = trouble;
    const { remote, scale, now, warn } = this.#front;
    warn("an exchange with a remote agent has failed", {
      taskId: this.#task.id,
      remote,
      step: `${TALK}/${step}`,
      code: codeOf(trouble),
      reason,
      attempt: tries,
      ...(goesOn(trouble, course) && {
        retryAt: new Date(now() + pauseMs(pause, waitMs ?? 0, scale)).toISOString(),
      }),
    });
  }

  #text(trouble: Trouble, { left, pause }: Course): string {
    const { remote, scale, now } = this.#front;
    const { waitMs } = trouble;
    const code = codeOf(trouble);
    let until = now() + pauseMs(pause, waitMs ?? 0, scale);
    for (let more = 1; more < left; more++) until += pauseMs(pause + more, 0, scale);
    // Nothing is tried once the task's own time is over.
    until = Math.min(until, this.#task.deadline);
    const what = ANSWERS.includes(code) ? "turns it away" : "is not reached";
    return `${remote} ${what} (${code}); tried again until about ${new Date(until).toISOString()}`;
  }
}
