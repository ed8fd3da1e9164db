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

/** What was waited for did not come in time. The task itself may go on. */
export class TimedOut extends CliError {
  readonly taskId: string;

  constructor(taskId: string, timeoutMs: number, what = "did not end") {
    const advice = `it may still go on: ./sluice status ${taskId}, or ./sluice cancel ${taskId}`;
    super(EXIT.timedOut, `timed out: ${taskId} ${what} within ${timeoutMs / 1_000} s; ${advice}`);
    this.taskId = taskId;
  }
}
