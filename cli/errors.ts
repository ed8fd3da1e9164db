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

const advice = (taskId: string) => `./sluice status ${taskId}, or ./sluice cancel ${taskId}`;

/** The waiting was interrupted. The task goes on. */
export class Left extends CliError {
  constructor(taskId: string) {
    super(EXIT.interrupted, `interrupted; the task goes on: ${advice(taskId)}`);
  }
}

/** What was waited for did not come in time. The task itself may go on. */
export class TimedOut extends CliError {
  readonly taskId: string;

  constructor(taskId: string, timeoutMs: number, what = "did not end") {
    super(
      EXIT.timedOut,
      `timed out: ${taskId} ${what} within ${timeoutMs / 1_000} s; it may still go on: ${advice(taskId)}`,
    );
    this.taskId = taskId;
  }
}
