/** What the command's exit code says (docs/command.md). */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, timedOut: 124, interrupted: 130 } as const;

/** An error that the user can mend: one line that says what happened and what to do. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Only what has been accepted can be cancelled. */
const advice = (taskId: string, isTaken: boolean) =>
  `./sluice status ${taskId}${isTaken ? `, or ./sluice cancel ${taskId}` : ""}`;

/** The waiting was interrupted. The task goes on. */
export class Left extends CliError {
  /** @param isTaken whether its executor has said anything of it */
  constructor(taskId: string, isTaken: boolean) {
    const then = isTaken ? "the task goes on" : "nobody has taken the task yet, and it waits";
    super(EXIT.interrupted, `interrupted; ${then}: ${advice(taskId, isTaken)}`);
  }
}

/** What was waited for did not come in time. The task itself may go on. */
export class TimedOut extends CliError {
  readonly taskId: string;

  /** @param isTaken whether its executor has said anything of it */
  constructor(taskId: string, timeoutMs: number, what = "did not end", isTaken = true) {
    const then = isTaken ? "it may still go on" : "nobody has taken it yet, and it waits";
    super(
      EXIT.timedOut,
      `timed out: ${taskId} ${what} within ${timeoutMs / 1_000} s; ${then}: ${advice(taskId, isTaken)}`,
    );
    this.taskId = taskId;
  }
}
